"""The man pages of `plimsoll`, a page a command, from what it says of itself.

`make man` writes them into build/man/man1.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from inspect import cleandoc
from pathlib import Path
from typing import Any

import click

from plimsoll.cli import EngineCommand

ROOT = Path(__file__).parents[1]
OUT = ROOT / "build" / "man" / "man1"
_EXAMPLES = re.compile(r"\n*^Examples?:\n((?:[ ]+.*\n?|\n)+)", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """A man page: of a program, or of one of its commands.

    `options` and `commands`: how each is written, and what it does. `examples`: lines as they are typed.
    """

    name: str  # plimsoll check
    synopsis: str
    about: str
    options: Sequence[tuple[str, str]] = ()
    commands: Sequence[tuple[str, str]] = ()
    examples: str = ""

    @property
    def file(self) -> str:
        """Its file's name."""
        return f"{self.name.replace(' ', '-')}.1"


def roff(page: Page, version: str, date: str) -> str:
    """Return the page in the language of man(7). Pure."""
    first, rest = sentences(page.about)
    title = page.name.replace(" ", "-").upper()
    lines = [
        f'.TH "{title}" 1 "{date}" "plimsoll {version}" "Plimsoll"',
        ".SH NAME",
        rf"{escaped(page.name.replace(' ', '-'))} \- {escaped(first.rstrip('.'))}",
        ".SH SYNOPSIS",
        rf"\fB{escaped(page.name)}\fR {escaped(page.synopsis)}".rstrip(),
    ]
    if rest.strip():
        lines.append(".SH DESCRIPTION")
        paragraphs = [_one_line(each) for each in re.split(r"\n\s*\n", rest) if each.strip()]
        for number, paragraph in enumerate(paragraphs):
            lines += [*([".PP"] if number else []), escaped(paragraph)]
    lines += _listed("OPTIONS", page.options)
    lines += _listed("COMMANDS", page.commands)
    if page.examples.strip():
        lines += [".SH EXAMPLES", ".nf", *map(escaped, _dedented(page.examples)), ".fi"]
    program = page.name.split()[0]
    below = [f"{page.name.replace(' ', '-')}-{name}(1)" for name, _ in page.commands]
    above = [f"{program}(1)"] if page.name != program else []
    lines += [".SH SEE ALSO", escaped(", ".join([*above, *below]))]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Return text so that roff shows it as it is. Pure."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{text}" if text.startswith((".", "'")) else text


def sentences(text: str) -> tuple[str, str]:
    """Return the first sentence of a help text in one line, and all that follows. Pure."""
    first, gap, rest = text.strip().partition("\n\n")
    found = re.match(r"(.+?[.:])\s+(?=[A-Z`])(.*)", first, re.DOTALL)
    if not found:
        return _one_line(first), rest
    return _one_line(found[1]), f"{found[2]}{gap}{rest}"


def _listed(title: str, entries: Sequence[tuple[str, str]]) -> Iterator[str]:
    if entries:
        yield f".SH {title}"
    for name, what in entries:
        yield from (".TP", rf"\fB{escaped(name)}\fR", escaped(_one_line(what)) or r"\&")


def _one_line(text: str) -> str:
    return " ".join(text.replace("\b", "").split())


def _dedented(text: str) -> list[str]:
    lines = text.strip("\n").rstrip().splitlines()
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[indent:] for line in lines]


def _parted(text: str) -> tuple[str, str]:
    """Return a help text without its examples, and these."""
    text = text.replace("\b\n", "")
    found = _EXAMPLES.search(text)
    return (text, "") if not found else (text[: found.start()] + "\n\n" + text[found.end() :], found[1])


def of_click(root: click.Command) -> Iterator[Page]:
    """Yield the page of the program, and that of each of its commands."""
    yield from _below(click.Context(root, info_name="plimsoll", **root.context_settings))


def _below(context: click.Context) -> Iterator[Page]:
    command = context.command
    if isinstance(command, EngineCommand):
        yield _of_engine(context.command_path, command.describe())
        return
    about, examples = _parted(cleandoc(command.help or ""))
    options = [
        record
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option) and (record := parameter.get_help_record(context))
    ]
    commands = []
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None  # noqa: S101 list_commands names what get_command has
            commands.append((name, sentences(_parted(cleandoc(below.help or ""))[0])[0]))
            yield from _below(click.Context(below, info_name=name, parent=context))
    synopsis = " ".join(command.collect_usage_pieces(context))
    yield Page(context.command_path, synopsis, about, options, commands, examples)


def _of_engine(name: str, described: dict[str, Any]) -> Page:
    """Return the page of a command that the engine carries out, from what it says in JSON."""
    about, examples = _parted(described["detail"] + "\n")
    synopsis = described["usage"].removeprefix(f"{described['name']} ")
    flags = [
        (f"--{flag['name']}" + (f"={flag['value']}" if flag["value"] else ""), flag["help"])
        for flag in described["flags"]
    ]
    return Page(name, synopsis, f"{described['help']}\n\n{about}", flags, (), examples)


def pages() -> list[Page]:
    """Return all pages."""
    import locust  # noqa: F401 it patches ssl, and has to come before whatever else loads that

    from plimsoll.cli import main as root

    return list(of_click(root))


def main(arguments: list[str]) -> int:
    """Rewrite all pages, in the given folder or in build/man/man1."""
    from plimsoll import __version__

    today = datetime.now(UTC).date().isoformat()
    out = Path(arguments[0]) if arguments else OUT
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.1"):
        old.unlink()
    found = pages()
    for page in found:
        (out / page.file).write_text(roff(page, __version__, today), encoding="utf-8")
    shown = out.relative_to(ROOT) if out.is_relative_to(ROOT) else out
    print(f"Wrote {len(found)} pages into {shown}: man -l {shown}/plimsoll.1")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    raise SystemExit(main(sys.argv[1:]))
