"""The documents: what they show can be run, name what there is, and leave nothing out."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from plimsoll.analysis.evidence.measure import measure_figures
from plimsoll.analysis.statistics.percentiles import P999, Sample
from plimsoll.cli import GROUPS, main
from plimsoll.common.commands import FORMER_NAMES
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import Records
from tests.support.programs import DOCS, ROOT
from tests.support.rundir import records, traffic, write_run
from tools import house
from tools.reference import undocumented

PAGES = sorted(DOCS.glob("*.md"))
TEXTS = [page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *PAGES]]
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
    if words[0] != ".venv/bin/plimsoll":
        return f"{words[0]} is not in a fresh clone"
    rest = words[1 : words.index("--")] if "--" in words else words[1:]
    name = ["plimsoll"]
    while len(rest) > 0 and f"## `{' '.join([*name, rest[0]])}`\n" in REFERENCE:
        name.append(rest.pop(0))
    used = {word.partition("=")[0] for word in rest if word.startswith("-")}
    unknown = sorted(used - flags_of(" ".join(name)) - {"--help"})
    return f"{' '.join(name)} has no {unknown[0]}" if unknown else missing(words)


def missing(words: list[str]) -> str | None:
    """Return which file of the examples a command names that does not exist."""
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
        (".venv/bin/plimsoll check --no-probe examples/one-machine.yml", None),
        (".venv/bin/plimsoll check --no-prob lab.yml", "plimsoll check has no --no-prob"),
        (".venv/bin/plimsoll check examples/none.yml", "there is no examples/none.yml"),
        ("plimsoll report results/latest", "plimsoll is not in a fresh clone"),
        (".venv/bin/plimsoll replay examples/access.log --sped 2", "plimsoll replay has no --sped"),
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


def _commands(group: click.Group = main, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command with its whole name; scenarios have a test of their own."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        whole = f"{path} {name}".strip()
        if isinstance(command, click.Group) and name != "scenario":
            yield from _commands(command, whole)
        elif command is not None:
            yield whole, command


COMMANDS = dict(_commands())
NESTED = sorted({name.partition(" ")[0] for name in COMMANDS if " " in name} | {"scenario"} - {"signoff"})


def test_there_are_commands_to_document() -> None:
    assert {"report", "merge", "import k6", "scenario"} <= COMMANDS.keys()


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_command_and_its_flags_are_documented(command: str) -> None:
    options = [each for each in COMMANDS[command].params if isinstance(each, click.Option)]
    flags = [flag for option in options for flag in [*option.opts, *option.secondary_opts]]
    assert any(f"`plimsoll {command}" in text for text in TEXTS)
    pages = [text for text in TEXTS if f"plimsoll {command}" in text]
    assert [flag for flag in flags if not any(f"`{flag}" in text for text in pages)] == []


EXAMPLES = [path for path in (ROOT / "examples").rglob("*") if path.is_file() and path.suffix != ".gz"]
SHOWN = [*TEXTS, *(path.read_text(encoding="utf-8") for path in EXAMPLES)]


@pytest.mark.parametrize(("former", "now"), FORMER_NAMES.items())
def test_a_former_name_is_refused_with_the_present_one_and_shown_nowhere(former: str, now: str) -> None:
    done = CliRunner().invoke(main, [*former.split(), "nightly"])
    assert (done.exit_code, f"Error: plimsoll {former} is now {now}." in done.output) == (2, True), (
        done.output
    )
    shown = r"\s+".join(["plimsoll", *former.split()]) + r"(?![\w-])"
    assert [text[:40] for text in SHOWN if re.search(shown, text)] == []


# The engine's own help is tested in Go.
HELPS = sorted({"", "scenario list", "scenario visitors", *NESTED, *COMMANDS}.difference(GROUPS["Replay"]))


@pytest.mark.parametrize("command", HELPS)
def test_help_opens_with_an_example_and_says_what_the_exit_codes_mean(command: str) -> None:
    usage, summary, *others = re.split(r"\n\s*\n *", _help(command))
    assert re.match(rf"Examples:\s+plimsoll {command}", "\n".join(others)), summary
    codes = [each for each in others if each.startswith("Exit codes")]
    assert len(codes) == (command not in NESTED), usage
    numbers = [re.findall(r"(?<=[:;]) ([0-3]) ", " ".join(each.split())) for each in codes]
    assert all(each[0] == "0" and each == sorted(each) for each in numbers), codes


def _help(command: str) -> str:
    """Return what --help prints. Scenarios patch the process that imports them, so theirs is another."""
    if command.startswith("scenario"):
        words = [sys.executable, "-m", "plimsoll", *command.split(), "--help"]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout
    ran = CliRunner().invoke(main, [*command.split(), "--help"], prog_name="plimsoll")
    assert ran.exit_code == 0
    return ran.output


def rising(requests: int) -> Records:
    """Return requests each of which took a microsecond longer than the one before."""
    return records(requests, lag_us=7, total_us=range(1, requests + 1))


SITE = traffic(60, 30)
RUNS = [
    ("one thousand", rising(1000)),
    ("a multiple of a thousand, where 99.9 / 100 would be a rank too high", rising(7000)),
    ("a count between", rising(7001)),
    ("a minute of a site", SITE[(SITE["error"] == 0) & (SITE["status"] < 400)]),
]


@pytest.mark.parametrize(("what", "table"), RUNS, ids=[row[0] for row in RUNS])
def test_the_five_lines_print_the_p999_that_plimsoll_has(tmp_path: Path, what: str, table: Records) -> None:
    text = (DOCS / "run-format.md").read_text(encoding="utf-8")
    snippet = re.search(r"Read it in five lines:\n\n```python\n(.+?)```", text, re.DOTALL)
    assert snippet
    assert len(snippet[1].splitlines()) == 5
    run = write_run(tmp_path / "results" / "latest", table)
    ran = subprocess.run(
        [sys.executable, "-c", snippet[1]], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    wanted = Sample.of(table["lag_us"] + table["total_us"]).percentile_ms(P999)
    assert ran.stdout == f"p99.9 of {len(table)} requests: {wanted} ms\n", what
    assert measure_figures(RunDirectory.open(run)).samples["response"].percentile_ms(P999) == wanted


@pytest.mark.parametrize("tool", ["reference", "house", "tables"])
def test_what_make_docs_writes_is_not_stale(tool: str) -> None:
    ran = subprocess.run(
        [sys.executable, f"tools/{tool}.py", "check"], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr


def test_a_command_or_flag_without_help_is_found() -> None:
    quiet = click.Command(
        "quiet", params=[click.Option(["--loud"]), click.Option(["--soft"], help="Softly.")]
    )
    root = click.Group("plimsoll", help="Say it.", commands={"quiet": quiet})
    assert undocumented(root) == [
        "plimsoll quiet has no help: give it a docstring",
        "plimsoll quiet --loud has no help: pass help=",
    ]


def test_every_floor_is_drawn() -> None:
    drawn = house.drawing()
    rooms = [room for floors in house.python_floors().values() for floor in floors for room in floor]
    names = [re.sub(r"^plimsoll\.((lab|analysis|scenarios)\.)?", "", room) for room in rooms]
    names += [room for floor in house.go_floors() for room in floor if room != "."]
    assert len(names) > 40
    assert [name for name in names if name not in drawn] == []


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(SystemExit, match="lacks the marks"):
        house.page("# The house\n")


def test_each_file_with_slow_tests_is_listed_and_no_other() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (tests/\S+\.py) \|", text, re.MULTILINE)
    marked = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if path != Path(__file__)
        and re.search(r"pytest\.mark\.slow\b|\bslow_but\(", path.read_text(encoding="utf-8"))
    ]
    assert listed == marked
