"""Each page is in the index, opens with a command that can be run, and names files that there are."""

import re
import shlex
from pathlib import Path

import click
import pytest

from plimsoll.cli import main
from tests.support.programs import DOCS, ROOT

PAGES = sorted(DOCS.glob("*.md"))
INDEX = (DOCS / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPENING_LINES = 16  # within which a page's first command stands
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
REFERENCE = (DOCS / "commands.md").read_text(encoding="utf-8")


def opening(text: str) -> list[str]:
    """Return the commands of the block that a page opens with."""
    lines = text.splitlines()
    found = BLOCK.search("\n".join(lines) + "\n")
    assert found, "no command"
    assert text[: found.start()].count("\n") < OPENING_LINES, "its first command stands too far down"
    return commands(found[1])


def commands(block: str) -> list[str]:
    """Return the single commands of a block of shell: comments, loops and joined lines taken apart."""
    block = re.sub(r"\\\n\s*", " ", re.sub(r"(^|\s)#.*$", "", block, flags=re.MULTILINE))
    parts = re.split(r"\n|;|&&|\|", block)
    return [words for part in parts if (words := re.sub(r"^\s*(do|done)\b", "", part).strip())]


def flags_of(name: str) -> set[str]:
    """Return the flags of a command, from its section of the reference."""
    section = REFERENCE.partition(f"## `{name}`\n")[2].partition("\n## ")[0]
    assert section, f"there is no command {name}"
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z0-9-]*", section))


def problem(command: str) -> str | None:
    """Return what is wrong with a command of an opening block, or None."""
    words = [word for word in shlex.split(command) if not re.fullmatch(r"[A-Z_]+=.*", word)]
    if not words or words[0] in ("export", "for", ".", "ls", "head", "sudo", "apt-get", "awk"):
        return None
    if words[0] == "make":
        unknown = [word for word in words[1:] if word not in TARGETS and word != ".venv/.regress"]
        return f"make has no target {unknown[0]}" if unknown else missing(words)
    if words[0] == ".venv/bin/python":
        module = ROOT / words[2].replace(".", "/")
        return None if module.is_dir() or module.with_suffix(".py").is_file() else f"no module {words[2]}"
    if words[0] not in (".venv/bin/plimsoll", "bin/replay"):
        return f"{words[0]} is not in a fresh clone"
    rest = words[1 : words.index("--")] if "--" in words else words[1:]
    name = ["plimsoll" if words[0].endswith("plimsoll") else words[0]]
    while len(rest) > 0 and f"## `{' '.join([*name, rest[0]])}`\n" in REFERENCE:
        name.append(rest.pop(0))
    used = {word.partition("=")[0] for word in rest if word.startswith("-")}
    unknown = sorted(used - flags_of(" ".join(name)) - {"--help"})
    return f"{' '.join(name)} has no {unknown[0]}" if unknown else missing(words)


def missing(words: list[str]) -> str | None:
    """Return which file of the examples a command names that there is not."""
    named = [word.partition("=")[2] or word for word in words if "examples/" in word]
    return next((f"there is no {name}" for name in named if not (ROOT / name).exists()), None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_is_in_the_index(page: Path) -> None:
    assert page.name == "README.md" or INDEX.count(f"]({page.name})") == 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_opens_with_commands_that_exist(page: Path) -> None:
    said = opening(page.read_text(encoding="utf-8"))
    assert said
    assert [wrong for command in said if (wrong := problem(command))] == []


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("make bench", None),
        ("make benhc", "make has no target benhc"),
        (".venv/bin/plimsoll lab check --no-probe examples/one-machine.yml", None),
        (".venv/bin/plimsoll lab check --no-prob lab.yml", "plimsoll lab check has no --no-prob"),
        (".venv/bin/plimsoll lab check examples/none.yml", "there is no examples/none.yml"),
        ("plimsoll report results/latest", "plimsoll is not in a fresh clone"),
        ("bin/replay run examples/access.log --sped 2", "bin/replay run has no --sped"),
    ],
)
def test_what_cannot_be_run_is_found(command: str, wrong: str | None) -> None:
    assert problem(command) == wrong


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name)
def test_links_and_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = {link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in link}
    assert sorted(link for link in links if not (page.parent / link).exists()) == []
    folders = "analysis|benchmarks|docs|examples|lab|plimsoll|replay|scenarios|site|tests|tools"
    named = set(re.findall(rf"`((?:{folders})/[\w./-]*)`", text))
    named -= {"benchmarks/installed/"}  # made by make peers
    named = {re.sub(r"/[^/]*NAME.*", "", name) for name in named}
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_the_names_that_extending_md_finds_in_a_file_are_there() -> None:
    text = " ".join((DOCS / "extending.md").read_text(encoding="utf-8").split())
    pairs = re.findall(r"`(\w+)` (?:of|in) `([\w./]+\.(?:py|go))`", text)
    assert len(pairs) > 12
    missing = [pair for pair in pairs if pair[0] not in (ROOT / pair[1]).read_text(encoding="utf-8")]
    assert missing == []


ANCHOR = re.compile(r"\]\(([\w.-]+\.md)?#([\w-]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_into_a_page_lead_to_a_heading(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for file, anchor in ANCHOR.findall(text):
        other = (DOCS / file).read_text(encoding="utf-8") if file else text
        headings = re.findall(r"^#+ (.+)$", other, re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert anchor in slugs, f"{file or page.name} has no heading #{anchor}"


def test_the_readme_is_two_screens() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 100


def test_the_commands_of_the_command_are_those_of_the_reference() -> None:
    for name in main.list_commands(click.Context(main)):
        assert f"## `plimsoll {name}`\n" in REFERENCE
