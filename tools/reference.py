"""docs/commands.md: every command and flag of `plimsoll`, from its own help.

`make docs` writes the page; `make lint` and a test fail when it is stale, or when a flag has no help.
"""

import re
import sys
from collections.abc import Iterator
from difflib import unified_diff
from itertools import islice
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "commands.md"
WIDTH = 100  # columns of the help of `plimsoll`; its engine has its own

INTRODUCTION = """\
# Commands

Every command and every flag of `plimsoll`, in the words of its own `--help`:

```sh
.venv/bin/plimsoll --help
```

`bin/replay` is the engine, which needs no Python: `bin/replay run` is `plimsoll replay`; `parse`, `same`,
`origin`, `watch` and `lag` have the same names, flags and exit codes in both.

`make docs` writes this page; do not edit it. `make help` lists the targets of make. The
[index](README.md) leads to the pages that explain the commands.
"""

SHARED = """\
## The same flags for the same things

Exit codes: 0 yes, or done; 1 it ran and the answer is no; 2 wrong usage or unreadable input; 3 it cannot be
judged.

"""


def commands(root: click.Command) -> Iterator[tuple[str, click.Command, str]]:
    """Yield the full name, the command and the help of `root` and of all commands below it."""
    context = click.Context(root, info_name="plimsoll", terminal_width=WIDTH, **root.context_settings)
    yield from _below(context)


def _below(context: click.Context) -> Iterator[tuple[str, click.Command, str]]:
    command = context.command
    yield context.command_path, command, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None  # noqa: S101 list_commands names what get_command has
            yield from _below(click.Context(below, info_name=name, parent=context, terminal_width=WIDTH))


def undocumented(root: click.Command) -> list[str]:
    """Return a sentence for each command without help and each flag without help."""
    problems = []
    for name, command, _ in commands(root):
        if not command.help:
            problems.append(f"{name} has no help: give it a docstring")
        problems += [
            f"{name} {option.opts[0]} has no help: pass help="
            for option in command.get_params(click.Context(command, info_name=command.name))
            if isinstance(option, click.Option) and not option.help
        ]
    return problems


def page(root: click.Command) -> str:
    """Return docs/commands.md."""
    texts = [(name, text) for name, _, text in commands(root)]
    contents = "\n".join(f"- [`{name}`](#{name.replace(' ', '-')})" for name, _ in texts)
    sections = [f"## `{name}`\n\n```text\n{_trimmed(text)}\n```\n" for name, text in texts]
    return "\n".join([INTRODUCTION, contents + "\n", shared_flags(root), *sections])


def shared_flags(root: click.Command) -> str:
    """Return the table of the flags that mean the same in every command, and of the exit codes."""
    flags = ("--json", "--out", "--quiet", "--progress", "--yes")
    rows = [f"| command | {' | '.join(f'`{flag}`' for flag in flags)} | exit codes |", "| --- " * 7 + "|"]
    for name, command, text in commands(root):
        params = command.get_params(click.Context(command, info_name=command.name))
        known = {flag for each in params if isinstance(each, click.Option) for flag in each.opts}
        codes = re.search(r"Exit codes.*?(?=\n\s*\n)", text, re.DOTALL)
        numbers = sorted(set(re.findall(r"[:;]\s+([0-3])\s", codes[0]))) if codes else []
        if isinstance(command, click.Group) and not numbers:
            continue  # only its commands do anything
        marks = ["yes" if flag in known else "" for flag in flags]
        rows.append(f"| `{name}` | {' | '.join(marks)} | {', '.join(numbers)} |")
    return SHARED + "\n".join(rows) + "\n"


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def _first_difference(written: str, made: str) -> list[str]:
    """Return the first lines in which the page and what the program says differ."""
    lines = unified_diff(
        written.splitlines(), made.splitlines(), "docs/commands.md", "the program", "", "", 0, ""
    )
    return list(islice(lines, 12))


def main(arguments: list[str]) -> int:
    """Write the page, or with the argument `check` say whether it is stale."""
    import locust  # noqa: F401 it patches ssl, and has to come before whatever else loads that

    from plimsoll.cli import main as root

    problems = undocumented(root)
    made = page(root)
    if arguments == ["check"]:
        written = PAGE.read_text(encoding="utf-8")
        if written != made:
            problems += ["docs/commands.md is stale: make docs", *_first_difference(written, made)]
    else:
        PAGE.write_text(made, encoding="utf-8")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    raise SystemExit(main(sys.argv[1:]))
