"""The drawing and the tables of docs/house.md: floors, packages and imports, read from the code itself.

The floors are those of .importlinter and of replay/house_test.go, so the page draws what is enforced.
`make docs` writes the parts between the marks; `make lint` and a test fail when they are stale.
"""

import ast
import configparser
import re
import sys
import textwrap
from collections.abc import Sequence
from itertools import chain, zip_longest
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "house.md"
PACKAGE = "plimsoll."  # the package that all rooms of the Python house are in
LEFT, RIGHT = 72, 45  # columns of the two houses
GO_IMPORT = r'^(?:import )?\s*(?:\w+ )?"plimsoll/replay/([\w/]+)"$'
GO_COMMENT = r"((?:^//[^\n]*\n)+)package \w+$"

Floors = list[list[str]]  # from the roof to the ground; rooms on one floor know nothing of each other
Row = tuple[str, str, list[str]]  # a package, what it says of itself, the packages of ours that it imports


def python_floors() -> dict[str, Floors]:
    """Return the floors of each layers contract of .importlinter: `floors` is the whole house."""
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter", encoding="utf-8")
    floors = {}
    for section in config.sections():
        contract = config[section]
        if contract.get("type") == "layers":
            inside = f"{contract['containers']}." if "containers" in contract else ""
            floors[section.removeprefix("importlinter:contract:")] = [
                [inside + name.strip() for name in line.split("|")]
                for line in contract["layers"].splitlines()
                if line
            ]
    return floors


def go_floors() -> Floors:
    """Return the floors of replay/house_test.go: folders below replay/, "." for the command."""
    text = (ROOT / "replay" / "house_test.go").read_text(encoding="utf-8")
    plan = text.partition("var house = [][]string{")[2].partition("\n}")[0]
    return [re.findall(r'"([^"]+)"', line) for line in plan.splitlines() if '"' in line]


def _wrapped(head: str, words: Sequence[str], width: int) -> list[str]:
    """Return `words`, with dots between them and wrapped to `width`, after `head` in the first line."""
    glued = " ".join(word + "\0·" for word in words).removesuffix("\0·")  # no line begins with a dot
    lines = [line.replace("\0", " ") for line in textwrap.wrap(glued, width - len(head)) or [""]]
    return [before + line for before, line in zip_longest([head], lines, fillvalue=" " * len(head))]


def _box(title: str, floors: list[list[str]], width: int) -> list[str]:
    """Return a house of `width` columns: a title, then the lines of each floor, between rules."""
    inner = width - 4
    lines = [f"┌─ {title} {'─' * (width - len(title) - 5)}┐"]
    for number, floor in enumerate(floors):
        if number:
            lines.append(f"├{'─' * (width - 2)}┤")
        lines += [f"│ {line:<{inner}} │" for line in floor]
    return [*lines, f"└{'─' * (width - 2)}┘"]


def drawing() -> str:
    """Return both houses side by side, on the one thing that they share."""
    contracts = python_floors()
    left = []
    for name in chain.from_iterable(contracts["floors"]):
        floor: list[str] = []
        short = name.removeprefix(PACKAGE)
        for rooms in contracts.get(short, [[]]):
            head = f"{'' if floor else short:<17}"
            floor += _wrapped(head, [room.removeprefix(f"{name}.") for room in rooms], LEFT - 4)
        left.append(floor)
    names = [["bin/replay" if room == "." else room for room in rooms] for rooms in go_floors()]
    right = [_wrapped("", rooms, RIGHT - 4) for rooms in names]
    pairs = zip_longest(_box("Python", left, LEFT), _box("Go, in replay/", right, RIGHT), fillvalue="")
    houses = [f"{a:<{LEFT}} {b}".rstrip() for a, b in pairs]
    ground = [["the run directory: docs/run-format.md"]]
    return "\n".join(
        [*houses, *_box("what both stand on, and all that they share", ground, LEFT + 1 + RIGHT)]
    )


def _summary(path: Path) -> str:
    """Return the first sentence of a Python package's or module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split())


def python_rows() -> list[Row]:
    """Return a row for each room of the Python house."""
    contracts = python_floors()
    plan = chain.from_iterable(contracts["floors"])
    rooms = [contracts.get(name.removeprefix(PACKAGE), [[name]]) for name in plan]
    names = [name for floors in rooms for floor in floors for name in floor]
    graph = grimp.build_graph(PACKAGE.removesuffix("."), cache_dir=None)
    imports: dict[str, set[str]] = {name: set() for name in names}
    for module in graph.modules:
        if owner := _owner(module, names):
            below = {_owner(other, names) for other in graph.find_modules_directly_imported_by(module)}
            imports[owner] |= below - {owner, ""}
    return [
        (
            name.removeprefix(PACKAGE),
            _docstring(name),
            [one.removeprefix(PACKAGE) for one in sorted(imports[name], key=names.index)],
        )
        for name in names
    ]


def _owner(module: str, names: list[str]) -> str:
    """Return the room that a module is in, or the empty string."""
    return next((name for name in names if f"{module}.".startswith(f"{name}.")), "")


def _docstring(name: str) -> str:
    """Return the first paragraph of a package's or module's docstring."""
    place = ROOT / name.replace(".", "/")
    module = place.with_suffix(".py")  # a folder beside it is what Python left of a former package
    path = module if module.is_file() else place / "__init__.py"
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split())


def go_rows() -> list[Row]:
    """Return a row for each room of the Go house; the module of k6 need not be there to be compiled."""
    rows = []
    names = [name for floor in go_floors() for name in floor]
    for name in names:
        paths = sorted((ROOT / "replay" / name).glob("*.go"))
        texts = [path.read_text(encoding="utf-8") for path in paths if not path.name.endswith("_test.go")]
        imports = {found for text in texts for found in re.findall(GO_IMPORT, text, re.MULTILINE)}
        comment = next(
            (found[1] for text in texts if (found := re.search(GO_COMMENT, text, re.MULTILINE))), ""
        )
        says = " ".join(comment.partition("\n//\n")[0].replace("//", "").split())
        says = re.split(r"(?<=\.) (?=[A-Z])", says)[0]
        rows.append((f"replay/{name}".removesuffix("/."), says, sorted(imports, key=names.index)))
    return rows


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = ["| package | what it is | what it imports |", "| --- | --- | --- |"]
    for name, says, imports in rows:
        lines.append(
            f"| `{name}` | {says} | {', '.join(f'`{one}`' for one in imports) or 'nothing of ours'} |"
        )
    return "\n".join(lines)


def page(text: str) -> str:
    """Return docs/house.md with the parts between its marks rewritten."""
    for mark, made in (
        ("drawing", f"```text\n{drawing()}\n```"),
        ("python", table(python_rows())),
        ("go", table(go_rows())),
    ):
        begin, end = f"<!-- {mark}: written by make docs -->", f"<!-- end of {mark} -->"
        before, found, rest = text.partition(begin)
        if not found or end not in rest:
            raise SystemExit(f"docs/house.md lacks the marks {begin} and {end}")
        text = f"{before}{begin}\n\n{made}\n\n{end}{rest.partition(end)[2]}"
    return text


def main(arguments: list[str]) -> int:
    """Write the page, or with the argument `check` say whether it is stale."""
    text = PAGE.read_text(encoding="utf-8")
    made = page(text)
    if arguments != ["check"]:
        PAGE.write_text(made, encoding="utf-8")
    elif made != text:
        print("docs/house.md is stale: make docs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    raise SystemExit(main(sys.argv[1:]))
