// Command replay reads access logs as goaccess does and replays them against a server. It is the engine of `plimsoll`,
// too: started under that name, it calls its commands as plimsoll does.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"plimsoll/replay/cli"
	"plimsoll/replay/commands"
)

func main() {
	run := runMain
	if filepath.Base(os.Args[0]) == "plimsoll" {
		run = runForPlimsoll
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
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
	return runAs("replay", func(*kong.Kong) error { return nil }, args, in, out, errOut)
}

// runForPlimsoll is runMain in the words of plimsoll: `replay run` is `plimsoll replay`, all others have their own name.
func runForPlimsoll(args []string, in io.Reader, out, errOut io.Writer) int {
	return runAs("plimsoll", nameForPlimsoll, args, in, out, errOut)
}

func nameForPlimsoll(parser *kong.Kong) error {
	names := []string{"replay run", "plimsoll replay"}
	for _, node := range parser.Model.Children {
		names = append(names, "replay "+node.Name, "plimsoll "+node.Name)
	}
	inPlimsoll := strings.NewReplacer(names...)
	for _, node := range parser.Model.Children {
		if node.Name == "run" {
			node.Name = "replay"
		}
		node.Detail = inPlimsoll.Replace(node.Detail)
		for _, flag := range node.Flags {
			flag.Help = inPlimsoll.Replace(flag.Help)
		}
	}
	return nil
}

func runAs(name string, prepare func(*kong.Kong) error, args []string, in io.Reader, out, errOut io.Writer) int {
	var c program
	exited := -1
	parser, err := kong.New(&c,
		kong.Name(name),
		kong.PostBuild(prepare),
		kong.Description("Replay access logs at their recorded pace and measure response times as visitors experience them."),
		kong.Writers(out, errOut),
		kong.Vars{"version": "replay " + cli.Version},
		kong.Exit(func(code int) { exited = code; panic(exitNow{}) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
		kong.Bind(cli.Streams{In: in, Out: out, Err: errOut}),
	)
	if err != nil {
		fmt.Fprintf(errOut, "%s: %s\n", name, cli.Printable(err.Error()))
		return cli.ExitUsage
	}
	ctx, done, err := parseArgs(parser, args, &exited)
	if done {
		return exited
	}
	if err != nil {
		var wrong *kong.ParseError
		if errors.As(err, &wrong) && wrong.Context.Selected() != nil {
			name = wrong.Context.Selected().FullPath()
		}
		fmt.Fprintf(errOut, "%s: %s. See `%s --help`.\n", name, cli.Printable(err.Error()), name)
		return cli.ExitUsage
	}
	err = ctx.Run()
	if err != nil && err.Error() != "" {
		fmt.Fprintf(errOut, "%s: %s\n", name, cli.Printable(err.Error()))
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
