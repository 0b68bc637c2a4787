// Package completion says what a command line can be, and writes that as completion scripts for shells.
package completion

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// Program is a program: what it is called, and which commands and flags it has.
type Program struct {
	Name     string    `json:"name"`
	Help     string    `json:"help"`
	Flags    []Flag    `json:"flags"`
	Commands []Command `json:"commands"`
}

// Command is one of its commands.
type Command struct {
	Name   string `json:"name"`
	Help   string `json:"help"`
	Detail string `json:"detail"`
	Usage  string `json:"usage"`
	Flags  []Flag `json:"flags"`
	// Words are what the first argument may be; none: a file.
	Words []string `json:"words"`
}

// Flag is one flag. Value is what its help calls its value, "" where it has none; Words are what that may be.
type Flag struct {
	Name  string   `json:"name"`
	Help  string   `json:"help"`
	Value string   `json:"value"`
	Words []string `json:"words"`
}

// Of returns what kong knows of a program. What is hidden is left out.
func Of(app *kong.Application) Program {
	program := Program{Name: app.Name, Help: app.Help, Flags: flagsOf(app.Node)}
	for _, node := range app.Children {
		if node.Type != kong.CommandNode || node.Hidden {
			continue
		}
		command := Command{Name: node.Name, Help: node.Help, Detail: node.Detail, Usage: node.Summary(), Flags: flagsOf(node)}
		if len(node.Positional) > 0 {
			command.Words = enumOf(node.Positional[0])
		}
		program.Commands = append(program.Commands, command)
	}
	return program
}

func flagsOf(node *kong.Node) []Flag {
	flags := []Flag{}
	for _, flag := range node.Flags {
		if flag.Hidden {
			continue
		}
		one := Flag{Name: flag.Name, Help: strings.TrimSpace(flag.Help)}
		if !flag.IsBool() && !flag.IsCounter() {
			one.Value, one.Words = flag.FormatPlaceHolder(), enumOf(flag.Value)
		}
		flags = append(flags, one)
		if flag.Tag.Negatable != "" {
			flags = append(flags, Flag{Name: "no-" + flag.Name, Help: "Not: " + one.Help})
		}
	}
	return flags
}

func enumOf(value *kong.Value) []string {
	if value.Enum == "" {
		return nil
	}
	return value.EnumSlice()
}

// Script returns the script that completes the program in a shell.
func Script(shell string, program Program) (string, error) {
	write, known := map[string]func(Program) string{"bash": bash, "zsh": zsh, "fish": fish}[shell]
	if !known {
		return "", fmt.Errorf("%s: there is no completion for this shell, only for bash, zsh and fish", shell)
	}
	return write(program), nil
}

// sentence returns the first sentence of a help text, without its full stop: what fits beside a word in a list.
func sentence(help string) string {
	first, _, _ := strings.Cut(help, ". ")
	first, _, _ = strings.Cut(first, "\n")
	return strings.TrimSuffix(first, ".")
}

// quoted returns a word in single quotes, for bash and zsh.
func quoted(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
