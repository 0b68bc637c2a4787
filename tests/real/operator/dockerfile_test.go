package operator

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

func stages(t *testing.T) map[string]instructions.Stage {
	t.Helper()
	parsed, err := parser.Parse(strings.NewReader(read(t, "Dockerfile")))
	if err != nil {
		t.Fatal(err)
	}
	for _, warning := range parsed.Warnings {
		t.Errorf("BuildKit warns: %s", warning.Short)
	}
	found, global, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	defaults := []string{}
	for _, command := range global {
		for _, arg := range command.Args {
			if arg.Value == nil {
				t.Fatalf("ARG %s has no default", arg.Key)
			}
			defaults = append(defaults, arg.Key+"="+*arg.Value)
		}
	}
	out := map[string]instructions.Stage{}
	for _, stage := range found {
		from, _, err := shell.NewLex('\\').ProcessWord(stage.BaseName, shell.EnvsFromSlice(defaults))
		if err != nil || from == "" || !strings.Contains(from, ":") {
			t.Errorf("stage %s is from %q, which names no version (%v)", stage.Name, from, err)
		}
		out[stage.Name] = stage
	}
	return out
}

func TestTheImagesAreBuiltFromWhatIsThere(t *testing.T) {
	ignored := strings.Split(read(t, "Dockerfile.dockerignore"), "\n")
	all := stages(t)
	for name, stage := range all {
		for _, command := range stage.Commands {
			copies, ok := command.(*instructions.CopyCommand)
			if !ok {
				continue
			}
			if copies.From != "" {
				if _, ok := all[copies.From]; !ok {
					t.Errorf("%s copies from %s, which is no stage", name, copies.From)
				}
				continue
			}
			for _, path := range copies.SourcePaths {
				if _, err := os.Stat(filepath.Join("../../..", path)); err != nil {
					t.Errorf("%s copies %s, which is not there", name, path)
				}
				if !slices.Contains(ignored, "!"+path) {
					t.Errorf("%s copies %s, which Dockerfile.dockerignore keeps out", name, path)
				}
			}
		}
	}
}

func TestTheImagesRunWithoutRoot(t *testing.T) {
	for name, program := range map[string]string{"k6": "k6", "plimsoll": "plimsoll"} {
		user, entry := "", []string{}
		for _, command := range stages(t)[name].Commands {
			switch c := command.(type) {
			case *instructions.UserCommand:
				user = c.User
			case *instructions.EntrypointCommand:
				entry = c.CmdLine
			}
		}
		if user != "12345:12345" || !slices.Equal(entry, []string{program}) {
			t.Errorf("image %s runs %q as %q", name, entry, user)
		}
	}
}

// runs are the shell commands of a stage.
func runs(t *testing.T, stage string) []string {
	t.Helper()
	var out []string
	for _, command := range stages(t)[stage].Commands {
		if run, ok := command.(*instructions.RunCommand); ok {
			out = append(out, strings.Join(run.CmdLine, " "))
		}
	}
	return out
}

// TestTheImageIsBuiltAsMakeBuilds: make k6 is what the tests use.
func TestTheImageIsBuiltAsMakeBuilds(t *testing.T) {
	makefile, err := os.ReadFile("../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs(t, "build") {
		want := strings.NewReplacer("go build", "$(GO) build", "/out/k6", "../../bin/k6-plimsoll").Replace(run)
		if !strings.Contains(string(makefile), want) {
			t.Errorf("the image is built by %q, and make k6 does something else", run)
		}
	}
	for _, command := range stages(t)["build"].Commands {
		env, ok := command.(*instructions.EnvCommand)
		if !ok {
			continue
		}
		for _, pair := range env.Env {
			exported := regexp.MustCompile(`(?m)^export ` + pair.Key + `\s*:=.*` + regexp.QuoteMeta(pair.Value))
			if !exported.Match(makefile) {
				t.Errorf("the image is built with %s=%s, and make k6 with something else", pair.Key, pair.Value)
			}
		}
	}
}
