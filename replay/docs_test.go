package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"plimsoll/replay/cli"
	"plimsoll/replay/traffic"
)

// TestCommandsPage holds docs/commands.md, which `make docs` writes, against each command's own help.
func TestCommandsPage(t *testing.T) {
	page, err := os.ReadFile("../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"replay", "parse", "origin", "same", "watch", "lag"} {
		var help, errOut strings.Builder
		if code := runMain([]string{command, "--help"}, cli.Streams{Out: &help, Err: &errOut, Name: "plimsoll"}); code != 0 || errOut.Len() > 0 {
			t.Fatalf("plimsoll %s: exit %d: %s", command, code, errOut.String())
		}
		section := fmt.Sprintf("\n## `plimsoll %s`\n\n```text\n%s```\n", command, help.String())
		if !strings.Contains(string(page), section) {
			t.Errorf("docs/commands.md does not have what %s says of itself: make docs", command)
		}
	}
}

func TestEveryFlagHasHelp(t *testing.T) {
	parser, err := kong.New(&program{}, kong.Vars{"version": cli.Version})
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range parser.Model.Children {
		for _, f := range command.Flags {
			if f.Help == "" {
				t.Errorf("%s --%s has no help", command.Name, f.Name)
			}
		}
	}
}

// TestHelpOpensWithAnExampleThatRuns runs the first example of each command as it stands in its help, but for sites that
// are not on this machine, and with flags that make it end soon.
func TestHelpOpensWithAnExampleThatRuns(t *testing.T) {
	t.Setenv(asProgram, "1") // for the embedded origin
	examples, err := filepath.Abs("../examples")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for link, target := range map[string]string{"examples": examples, "access.log": "examples/access.log"} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	here := strings.NewReplacer("https://shop.example", newSite(t).URL, "http://10.0.0.5:8080", newSite(t).URL, "127.0.0.1:8080", "127.0.0.1:0")
	for _, row := range []struct{ command, end string }{
		{"", "--speed max --limit 9"}, {"run", "--speed max --limit 9"}, {"parse", "--stats"}, {"origin", "--exit-with-stdin"},
		{"same", "--limit 3"}, {"watch", "--until-eof --metrics " + freeAddress(t)}, {"lag", "--duration 1s"}, {"completion", ""},
	} {
		_, help, _ := call(append(strings.Fields(row.command), "--help")...)
		opening := regexp.MustCompile(`^Usage: replay.*\n\n(?:.+\n){1,2}\nExamples:\n\n.*?\b(replay .*?)(?:   .*|\).*)?\n(?:.*\n)*\nExit codes: 0 `).FindStringSubmatch(help)
		if opening == nil {
			t.Errorf("%s: the help does not open with an example, or has no exit codes: %s", row.command, help)
			continue
		}
		args := append(strings.Fields(here.Replace(opening[1]))[1:], strings.Fields(row.end)...)
		code, _, errOut := call(args...)
		if code != cli.ExitYes && row.command != "lag" { // whose answer depends on the machine
			t.Errorf("%s: exit %d: %s", args, code, errOut)
		}
	}
}

func TestTheEngineSpeaksAsPlimsollWhereThatStartsIt(t *testing.T) {
	log := writeLog(t, logLine(0, "GET / HTTP/1.1", "UA"))
	for _, row := range []struct {
		args string
		code int
		want string
	}{
		{"replay --help", cli.ExitYes, "Usage: plimsoll replay <log> ... [flags]"},
		{"replay --help", cli.ExitYes, "\n    plimsoll replay examples/access.log "},
		{"parse --help", cli.ExitYes, "\n    plimsoll parse examples/access.log "},
		{"replay " + log + " --tarlget x", cli.ExitUsage, "plimsoll replay: unknown flag --tarlget, did you mean \"--target\"? See `plimsoll replay --help`.\n"},
		{"prase " + log, cli.ExitUsage, "plimsoll: unexpected argument prase, did you mean \"parse\"? See `plimsoll --help`.\n"},
		{"replay " + log + " --log-time x", cli.ExitUsage, "plimsoll replay: --log-time must be one of \"auto\",\"received\",\"finished\" but got \"x\"."},
		{"parse " + log + " --format COMBINDE", cli.ExitUsage, "plimsoll: format \"COMBINDE\": it is not a preset: did you mean COMBINED?\n"},
		{"run " + log, cli.ExitUsage, "plimsoll: unexpected argument run. See"},
	} {
		var said strings.Builder
		code := runMain(strings.Fields(row.args), cli.Streams{Out: &said, Err: &said, Name: "plimsoll"})
		if code != row.code || !strings.Contains(said.String(), row.want) {
			t.Errorf("%s: exit %d: %s", row.args, code, said.String())
		}
	}
}

// Flags that the documents speak of must exist, and skip reasons that the program gives must be in the documents.
func TestDocumentsAndProgramAgree(t *testing.T) {
	parser, err := kong.New(&program{}, kong.Vars{"version": cli.Version})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"--help": true}
	for _, command := range parser.Model.Children {
		for _, f := range command.Flags {
			known["--"+f.Name] = true
			if f.Tag.Negatable != "" {
				known["--no-"+f.Name] = true
			}
		}
	}
	for _, page := range []string{"measurement.md", "log-formats.md", "members.md", "run-format.md"} {
		text, err := os.ReadFile(filepath.Join("../docs", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile("`(--[a-z][a-z-]+)").FindAllStringSubmatch(string(text), -1) {
			if !known[found[1]] && !strings.Contains(string(text), "goaccess's `"+found[1]) && !foreign[found[1]] {
				t.Errorf("docs/%s speaks of %s, which no command has", page, found[1])
			}
		}
	}
	runFormat, err := os.ReadFile("../docs/run-format.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{"method_not_allowed", "unsafe_target", "unsafe_header", "unsendable_h2", "cap_reached", traffic.SkipNotHTTP,
		traffic.SkipUntimed, traffic.SkipTunnel,
	} {
		if !strings.Contains(string(runFormat), "`"+reason+"`") {
			t.Errorf("docs/run-format.md does not explain %s", reason)
		}
	}
}

// foreign are flags of other programs that the documents mention.
var foreign = map[string]bool{"--enable-feature": true, "--no-ip-validation": true, "--log-format": true, "--double-decode": true, "--num-tests": true}
