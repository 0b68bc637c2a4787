package commands

import (
	"strings"
	"testing"
)

var sample = Program{
	Name:  "replay",
	Flags: []Flag{{Name: "help", Help: "Show help."}},
	Commands: []Command{
		{Name: "run", Help: "Replay: it's [here]. More.", Flags: []Flag{
			{Name: "pace", Help: "Which: it's [one].", Value: "P", Words: []string{"slow", "fast"}},
			{Name: "log", Help: "A file.", Value: "FILE"},
			{Name: "quiet", Help: "Say nothing."},
		}},
		{Name: "completion", Help: "Complete.", Words: []string{"bash", "zsh"}},
	},
}

func TestScripts(t *testing.T) {
	for _, row := range []struct {
		shell string
		has   []string
	}{
		{"bash", []string{
			"run | completion) command=", "run:--pace) mapfile -t COMPREPLY < <(compgen -W 'slow fast'", "run:--log) compopt -o default",
			"run:-*) words='--pace --log --quiet'", "completion:*) words='bash zsh'", ":*) words='run completion --help'",
		}},
		{"zsh", []string{
			`'run:Replay\: it'\''s [here]'`, `'*--pace=[Which\: it'\''s \[one\]]: :(slow fast)'`, "'*--log=[A file]: :_files'",
			"'--quiet[Say nothing]'", "'*: :(bash zsh)'", "'--help[Show help]'",
		}},
		{"fish", []string{
			`-f -a run -d 'Replay: it\'s [here]'`, `-l pace -x -a 'slow fast' -d 'Which: it\'s [one]'`, "-l log -r -d 'A file'",
			"-l quiet -d 'Say nothing'", "-f -a 'bash zsh'", "__fish_use_subcommand -l help",
		}},
	} {
		text, err := script(row.shell, sample)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range row.has {
			if !strings.Contains(text, part) {
				t.Errorf("%s lacks %q:\n%s", row.shell, part, text)
			}
		}
	}
}

func TestAnotherShellIsRefused(t *testing.T) {
	if _, err := script("tcsh", sample); err == nil || !strings.Contains(err.Error(), "only for bash, zsh and fish") {
		t.Errorf("got %v", err)
	}
}
