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
		if code := runForPlimsoll([]string{command, "--help"}, nil, &help, &errOut); code != 0 || errOut.Len() > 0 {
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
		if command.Help == "" || !strings.Contains(command.Detail, "replay "+command.Name) {
			t.Errorf("%s has no help with an example", command.Name)
		}
		for _, f := range command.Flags {
			if f.Help == "" {
				t.Errorf("%s --%s has no help", command.Name, f.Name)
			}
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
