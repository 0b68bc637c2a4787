// Command replay reads access logs as goaccess does and replays them against a server.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"plimsoll/replay/cli"
	"plimsoll/replay/commands"
)

func main() {
	os.Exit(runMain(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// program is the command line: one field per command. Each of them has a method Run.
type program struct {
	Run        commands.Run        `cmd:"" help:"Replay access logs against a server and measure its response times."`
	Parse      commands.Parse      `cmd:"" help:"Read access logs and print one JSON object per request, or totals."`
	Import     commands.Import     `cmd:"" help:"Turn access logs with durations into a run directory of what was served."`
	Origin     commands.Origin     `cmd:"" help:"Serve the targets of a log: real files of the logged sizes, and the logged status for all others."`
	Same       commands.Same       `cmd:"" help:"Compare two sites, page by page, over the requests of a log."`
	Watch      commands.Watch      `cmd:"" help:"Serve live figures of a folder to Prometheus: replays, scenarios, experiments."`
	Lag        commands.Lag        `cmd:"" help:"Measure how late this machine wakes a thread that sends. Sends nothing."`
	Completion commands.Completion `cmd:"" help:"Print the script that completes commands and flags in bash, zsh or fish."`
	Reference  commands.Reference  `cmd:"" hidden:"" help:"Print all commands and flags as JSON."`
	Version    kong.VersionFlag    `help:"Print the version and exit."`
}

// runMain parses the command line, runs the command and returns the exit code.
func runMain(args []string, in io.Reader, out, errOut io.Writer) int {
	var c program
	exited := -1
	parser, err := kong.New(&c,
		kong.Name("replay"),
		kong.Description("Replay access logs at their recorded pace and measure response times as visitors experience them."),
		kong.Writers(out, errOut),
		kong.Vars{"version": "replay " + cli.Version},
		kong.Exit(func(code int) { exited = code; panic(exitNow{}) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
		kong.Bind(cli.Streams{In: in, Out: out, Err: errOut}),
	)
	if err != nil {
		fmt.Fprintln(errOut, "replay:", cli.Printable(err.Error()))
		return cli.ExitUsage
	}
	ctx, done, err := parseArgs(parser, args, &exited)
	if done {
		return exited
	}
	if err != nil {
		fmt.Fprintf(errOut, "replay: %s. See `replay --help`.\n", cli.Printable(err.Error()))
		return cli.ExitUsage
	}
	err = ctx.Run()
	if err != nil && err.Error() != "" {
		fmt.Fprintln(errOut, "replay:", cli.Printable(err.Error()))
	}
	return cli.ExitCode(err)
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
