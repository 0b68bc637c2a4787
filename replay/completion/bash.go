package completion

import (
	"fmt"
	"strings"
)

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
