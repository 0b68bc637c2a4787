package completion

import (
	"fmt"
	"strings"
)

func zsh(p Program) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#compdef %s\n", p.Name)
	fmt.Fprintf(&b, "# Completion of %s for zsh. In ~/.zshrc, after compinit: source <(%s completion zsh)\n", p.Name, p.Name)
	fmt.Fprintf(&b, "_%s() {\n    local -a commands\n    local state line\n    commands=(\n", p.Name)
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "        %s\n", quoted(c.Name+":"+strings.ReplaceAll(sentence(c.Help), ":", `\:`)))
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
		fmt.Fprintf(b, "%s%s \\\n", indent, quoted(spec))
	}
}
