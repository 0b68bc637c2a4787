package main

import (
	"fmt"

	"github.com/alecthomas/kong"

	"plimsoll/replay/completion"
	"plimsoll/replay/run"
)

type completionCmd struct {
	Shell string `arg:"" help:"bash, zsh or fish." enum:"bash,zsh,fish"`
}

// Help is printed below the usage of `replay completion`.
func (c *completionCmd) Help() string {
	return `Examples:
  source <(replay completion bash)         in ~/.bashrc
  source <(replay completion zsh)          in ~/.zshrc, after compinit
  replay completion fish | source          in ~/.config/fish/config.fish

It completes the word replay, also with a path before it: bin/replay.`
}

// Run prints the script.
func (c *completionCmd) Run(s run.Streams, ctx *kong.Context) error {
	script, err := completion.Script(c.Shell, completion.Of(ctx.Model))
	if err != nil {
		return run.UsageError{Err: err}
	}
	_, err = fmt.Fprint(s.Out, script)
	return err
}

// referenceCmd prints what there is as JSON, from which tools/manual.py makes the man pages.
type referenceCmd struct{}

// Help is printed below the usage of `replay reference`.
func (c *referenceCmd) Help() string {
	return `Example:
  replay reference`
}

// Run prints it.
func (c *referenceCmd) Run(s run.Streams, ctx *kong.Context) error {
	return run.PrintJSON(s.Out, completion.Of(ctx.Model))
}
