package commands

// `replay completion` and `replay reference`: commands, flags and log formats as data, written as scripts for three
// shells or as JSON.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"plimsoll/replay/accesslog/formats"
	"plimsoll/replay/cli"
)

// Completion is `replay completion`.
type Completion struct {
	Shell string `arg:"" help:"bash, zsh or fish." enum:"bash,zsh,fish"`
}

// Help is printed below the usage of `replay completion`.
func (c *Completion) Help() string {
	return `Examples:
  source <(replay completion bash)         in ~/.bashrc
  source <(replay completion zsh)          in ~/.zshrc, after compinit
  replay completion fish | source          in ~/.config/fish/config.fish

It completes the word replay, also with a path before it: bin/replay.

Exit codes: 0 done; 2 the command line is wrong.`
}

// Run prints the script.
func (c *Completion) Run(s cli.Streams, ctx *kong.Context) error {
	text, err := script(c.Shell, readProgram(ctx.Model))
	if err != nil {
		return cli.Usage(err)
	}
	_, err = fmt.Fprint(s.Out, text)
	return err
}

// Reference prints commands, flags and log formats as JSON, from which tools/manual.py makes the man pages, and
// tools/tables.py the tables of docs/log-formats.md.
type Reference struct{}

// Help is printed below the usage of `replay reference`.
func (c *Reference) Help() string {
	return `Examples:
  replay reference`
}

// Run prints it.
func (c *Reference) Run(s cli.Streams, ctx *kong.Context) error {
	return cli.PrintJSON(s.Out, struct {
		Program
		Formats []formatRow `json:"formats"`
	}{readProgram(ctx.Model), formatRows()})
}

// formatRow is a row of the tables in docs/log-formats.md. A format without a name has no name, but a label.
type formatRow struct {
	Name  string   `json:"name"`
	Label string   `json:"label"`
	Log   string   `json:"log"`
	Keys  string   `json:"keys"`
	Times []string `json:"times"` // strftime formats, each once
	When  string   `json:"when"`
	Found bool     `json:"found"` // without a flag
}

func formatRows() (rows []formatRow) {
	for _, f := range formats.Named {
		row := formatRow{Name: f.Name, Log: f.Log, Keys: f.Keys, Times: []string{}, When: f.LogTime.String(), Found: true}
		if f.Server != "" {
			row.When += " (" + f.Server + ")"
		}
		for _, at := range []string{f.Date, f.Time, f.DateTime} {
			if at != "" && !slices.Contains(row.Times, at) {
				row.Times = append(row.Times, at)
			}
		}
		rows = append(rows, row)
	}
	for _, f := range formats.Unnamed {
		rows = append(rows, formatRow{Label: f.Label, Log: f.Log, Found: f.IsDetected})
	}
	return rows
}

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

// readProgram returns what kong knows of a program. What is hidden is left out.
func readProgram(app *kong.Application) Program {
	program := Program{Name: app.Name, Help: app.Help, Flags: readFlags(app.Node)}
	for _, node := range app.Children {
		if node.Type != kong.CommandNode || node.Hidden {
			continue
		}
		command := Command{Name: node.Name, Help: node.Help, Detail: node.Detail, Usage: node.Summary(), Flags: readFlags(node)}
		if len(node.Positional) > 0 {
			command.Words = enumWords(node.Positional[0])
		}
		program.Commands = append(program.Commands, command)
	}
	return program
}

func readFlags(node *kong.Node) []Flag {
	flags := []Flag{}
	for _, flag := range node.Flags {
		if flag.Hidden {
			continue
		}
		one := Flag{Name: flag.Name, Help: strings.TrimSpace(flag.Help)}
		if !flag.IsBool() && !flag.IsCounter() {
			one.Value, one.Words = flag.FormatPlaceHolder(), enumWords(flag.Value)
		}
		flags = append(flags, one)
		if flag.Tag.Negatable != "" {
			flags = append(flags, Flag{Name: "no-" + flag.Name, Help: "Not: " + one.Help})
		}
	}
	return flags
}

func enumWords(value *kong.Value) []string {
	if value.Enum == "" {
		return nil
	}
	return value.EnumSlice()
}

// script returns the script that completes the program in a shell.
func script(shell string, program Program) (string, error) {
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

// quote returns a word in single quotes, for bash and zsh.
func quote(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func bash(p Program) string {
	var b strings.Builder
	var names []string
	for _, c := range p.Commands {
		names = append(names, c.Name)
	}
	fmt.Fprintf(&b, "# Completion of %s for bash. In ~/.bashrc: source <(%s completion bash)\n", p.Name, p.Name)
	fmt.Fprintf(&b, "_%s() {\n", p.Name)
	fmt.Fprintf(&b, `    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command="" words="" i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        %s) command=${COMP_WORDS[i]} && break ;;
        esac
    done
    case $command:$previous in
`, strings.Join(names, " | "))
	for _, c := range p.Commands {
		bashValues(&b, c)
	}
	b.WriteString("    esac\n    case $command:$current in\n")
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "    %s:-*) words='%s' ;;\n", c.Name, longs(c.Flags))
		if len(c.Words) > 0 {
			fmt.Fprintf(&b, "    %s:*) words='%s' ;;\n", c.Name, strings.Join(c.Words, " "))
		}
	}
	fmt.Fprintf(&b, "    :*) words='%s %s' ;;\n", strings.Join(names, " "), longs(p.Flags))
	b.WriteString(`    *) compopt -o default && return ;; # a file
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
`)
	fmt.Fprintf(&b, "complete -F _%s %s\n", p.Name, p.Name)
	return b.String()
}

// bashValues writes what may follow the flags of a command that have values: words, or else a file.
func bashValues(b *strings.Builder, c Command) {
	var files []string
	for _, f := range c.Flags {
		switch {
		case len(f.Words) > 0:
			fmt.Fprintf(b, "    %s:--%s) mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$current\") && return ;;\n",
				c.Name, f.Name, strings.Join(f.Words, " "))
		case f.Value != "":
			files = append(files, fmt.Sprintf("%s:--%s", c.Name, f.Name))
		}
	}
	if len(files) > 0 {
		fmt.Fprintf(b, "    %s) compopt -o default && return ;;\n", strings.Join(files, " | "))
	}
}

func longs(flags []Flag) string {
	var names []string
	for _, f := range flags {
		names = append(names, "--"+f.Name)
	}
	return strings.Join(names, " ")
}

func zsh(p Program) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#compdef %s\n", p.Name)
	fmt.Fprintf(&b, "# Completion of %s for zsh. In ~/.zshrc, after compinit: source <(%s completion zsh)\n", p.Name, p.Name)
	fmt.Fprintf(&b, "_%s() {\n    local -a commands\n    local state line\n    commands=(\n", p.Name)
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "        %s\n", quote(c.Name+":"+strings.ReplaceAll(sentence(c.Help), ":", `\:`)))
	}
	b.WriteString("    )\n    _arguments -C \\\n")
	zshFlags(&b, p.Flags, "        ")
	b.WriteString("        '1: :->command' \\\n        '*:: :->rest' && return\n    case $state in\n")
	b.WriteString("    command) _describe command commands ;;\n    rest)\n        case $line[1] in\n")
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "        %s)\n            _arguments -S \\\n", c.Name)
		zshFlags(&b, c.Flags, "                ")
		rest := "_files"
		if len(c.Words) > 0 {
			rest = "(" + strings.Join(c.Words, " ") + ")"
		}
		fmt.Fprintf(&b, "                '*: :%s'\n            ;;\n", rest)
	}
	b.WriteString("        esac\n        ;;\n    esac\n}\n")
	fmt.Fprintf(&b, "if [[ ${funcstack[1]:-} == _%s ]]; then _%s \"$@\"; else compdef _%s %s; fi\n", p.Name, p.Name, p.Name, p.Name)
	return b.String()
}

func zshFlags(b *strings.Builder, flags []Flag, indent string) {
	for _, f := range flags {
		help := strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`).Replace(sentence(f.Help))
		spec := fmt.Sprintf("--%s[%s]", f.Name, help)
		switch {
		case len(f.Words) > 0:
			spec = fmt.Sprintf("*--%s=[%s]: :(%s)", f.Name, help, strings.Join(f.Words, " "))
		case f.Value != "":
			spec = fmt.Sprintf("*--%s=[%s]: :_files", f.Name, help)
		}
		fmt.Fprintf(b, "%s%s \\\n", indent, quote(spec))
	}
}

func fish(p Program) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Completion of %s for fish. In ~/.config/fish/config.fish: %s completion fish | source\n", p.Name, p.Name)
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "complete -c %s -n __fish_use_subcommand -f -a %s -d %s\n", p.Name, c.Name, quoteForFish(sentence(c.Help)))
	}
	fishFlags(&b, p.Name, "__fish_use_subcommand", p.Flags)
	for _, c := range p.Commands {
		condition := fmt.Sprintf("'__fish_seen_subcommand_from %s'", c.Name)
		if len(c.Words) > 0 {
			fmt.Fprintf(&b, "complete -c %s -n %s -f -a '%s'\n", p.Name, condition, strings.Join(c.Words, " "))
		}
		fishFlags(&b, p.Name, condition, c.Flags)
	}
	return b.String()
}

func fishFlags(b *strings.Builder, program, condition string, flags []Flag) {
	for _, f := range flags {
		value := ""
		switch {
		case len(f.Words) > 0:
			value = fmt.Sprintf(" -x -a '%s'", strings.Join(f.Words, " "))
		case f.Value != "":
			value = " -r"
		}
		fmt.Fprintf(b, "complete -c %s -n %s -l %s%s -d %s\n", program, condition, f.Name, value, quoteForFish(sentence(f.Help)))
	}
}

// quoteForFish returns a word in single quotes, in which fish knows \\ and \'.
func quoteForFish(word string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(word) + "'"
}
