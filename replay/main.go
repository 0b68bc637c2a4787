// Command replay reads access logs as goaccess does and replays them against a server. It is the engine of `plimsoll`,
// too: started under that name, it calls its commands as plimsoll does.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"plimsoll/replay/cli"
	"plimsoll/replay/commands"
)

func main() {
	s := cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Name: "replay"}
	if filepath.Base(os.Args[0]) == "plimsoll" {
		s.Name = "plimsoll"
	}
	os.Exit(runMain(os.Args[1:], s))
}

// program is the command line: one field per command. Each of them has a method Run.
type program struct {
	Run        commands.Run        `cmd:"" help:"Replay access logs against a server; measure response times."`
	Parse      commands.Parse      `cmd:"" help:"Print the requests of access logs, or their totals."`
	Import     commands.Import     `cmd:"" hidden:"" help:"Turn access logs with durations into a run directory of what was served."`
	Origin     commands.Origin     `cmd:"" help:"Serve the targets of a log: files of the logged sizes."`
	Same       commands.Same       `cmd:"" help:"Compare two sites page by page over the requests of a log."`
	Watch      commands.Watch      `cmd:"" help:"Serve live figures of a folder to Prometheus."`
	Lag        commands.Lag        `cmd:"" help:"Measure how late this machine wakes a thread that sends."`
	Completion commands.Completion `cmd:"" help:"Print the script that completes commands and flags."`
	Reference  commands.Reference  `cmd:"" hidden:"" help:"Print all commands and flags as JSON."`
	Version    kong.VersionFlag    `help:"Print the version and exit."`
}

// Help is printed below the usage of `replay`.
func (program) Help() string {
	return `Examples:
  replay run examples/access.log

Exit codes: 0 done; 1 the answer is no; 2 wrong usage; 3 cannot be judged.`
}

// runMain parses the command line, runs the command and returns the exit code.
func runMain(args []string, s cli.Streams) int {
	var c program
	exited := -1
	parser, err := kong.New(&c,
		kong.Name(s.Name),
		kong.Description("Replay access logs at their recorded pace and measure response times as visitors experience them."),
		kong.Writers(s.Out, s.Err),
		kong.Vars{"version": s.Name + " " + cli.Version},
		kong.Exit(func(code int) { exited = code; panic(exitNow{}) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
		kong.Bind(s),
	)
	if err != nil {
		s.Say(err.Error())
		return cli.ExitUsage
	}
	if s.Name == "plimsoll" {
		nameForPlimsoll(parser.Model.Node)
	}
	ctx, done, err := parseArgs(parser, args, &exited)
	if done {
		return exited
	}
	if err != nil {
		var wrong *kong.ParseError
		if errors.As(err, &wrong) && wrong.Context.Selected() != nil {
			s.Name = wrong.Context.Selected().FullPath()
		}
		text := err.Error()
		if !strings.HasSuffix(text, "?") {
			text += "."
		}
		s.Say(fmt.Sprintf("%s See `%s --help`.", text, s.Name))
		return cli.ExitUsage
	}
	err = ctx.Run()
	if err != nil && err.Error() != "" {
		s.Say(err.Error())
	}
	return cli.ExitCode(err)
}

// nameForPlimsoll calls the commands as plimsoll does: `replay run` is `plimsoll replay`, all others keep their name.
func nameForPlimsoll(root *kong.Node) {
	names := []string{"replay run", "plimsoll replay"}
	for _, node := range root.Children {
		names = append(names, "replay "+node.Name, "plimsoll "+node.Name)
	}
	inPlimsoll := strings.NewReplacer(names...)
	for _, node := range append(root.Children, root) {
		if node.Name == "run" {
			node.Name = "replay"
		}
		node.Detail = inPlimsoll.Replace(node.Detail)
		for _, flag := range node.Flags {
			flag.Help = inPlimsoll.Replace(flag.Help)
		}
	}
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
