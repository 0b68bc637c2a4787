package main

import (
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"plimsoll/replay/run"
)

type cli struct {
	Run     run.Command      `cmd:"" help:"Replay access logs against a server and measure its response times."`
	Parse   parseCmd         `cmd:"" help:"Read access logs and print one JSON object a request, or totals."`
	Origin  originCmd        `cmd:"" help:"Serve what a log asks for: real files of the logged sizes, the logged statuses for the rest."`
	Version kong.VersionFlag `help:"Print the version and exit."`
}

// runMain parses the command line, runs the command and returns the exit code.
func runMain(args []string, in io.Reader, out, errOut io.Writer) int {
	var c cli
	exited := -1
	parser, err := kong.New(&c,
		kong.Name("replay"),
		kong.Description("Replays access logs at their recorded pace and measures what a visitor would have felt."),
		kong.Writers(out, errOut),
		kong.Vars{"version": "replay " + run.Version},
		kong.Exit(func(code int) { exited = code; panic(exitNow{}) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
		kong.Bind(run.Streams{In: in, Out: out, Err: errOut}),
	)
	if err != nil {
		fmt.Fprintln(errOut, "replay:", err)
		return exitUsage
	}
	ctx, done, err := parseArgs(parser, args, &exited)
	if done {
		return exited
	}
	if err != nil {
		fmt.Fprintf(errOut, "replay: %v. See `replay --help`.\n", err)
		return exitUsage
	}
	err = ctx.Run()
	if err != nil && err.Error() != "" {
		fmt.Fprintln(errOut, "replay:", err)
	}
	return exitCode(err)
}

// exitNow unwinds out of kong when it has printed help or the version.
type exitNow struct{}

func parseArgs(parser *kong.Kong, args []string, exited *int) (ctx *kong.Context, done bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(exitNow); !ok {
				panic(r)
			}
			done = true
		}
	}()
	if len(args) == 0 {
		args = []string{"--help"}
	}
	ctx, err = parser.Parse(args)
	return ctx, *exited >= 0, err
}
