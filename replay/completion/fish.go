package completion

import (
	"fmt"
	"strings"
)

func fish(p Program) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Completion of %s for fish. In ~/.config/fish/config.fish: %s completion fish | source\n", p.Name, p.Name)
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "complete -c %s -n __fish_use_subcommand -f -a %s -d %s\n", p.Name, c.Name, fishQuoted(sentence(c.Help)))
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
		fmt.Fprintf(b, "complete -c %s -n %s -l %s%s -d %s\n", program, condition, f.Name, value, fishQuoted(sentence(f.Help)))
	}
}

// fishQuoted returns a word in single quotes, in which fish knows \\ and \'.
func fishQuoted(word string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(word) + "'"
}
