"""Check the words of Plimsoll with textlint and the rules of tools/words.yml.

textlint reads prose, not code. So what people read (docstrings, messages, help, pages, comments of Go, docs)
is taken out of each file, one paragraph a line, and what textlint finds in it is named by file and line.
`tools/words.py print` prints that prose; `tools/words.py FOLDER` checks another tree.
"""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
NODE = ROOT / "tools" / "node"
FILES = ("plimsoll/**/*", "replay/**/*.go", "tools/*", "site/*", "tests/golden/*.txt", "Makefile")
DOCS = ("*.md", "docs/*.md", "examples/**/*.md", "site/**/*.md", "tools/**/*.md", "tests/golden/*.md")
# What is not ours or not for people.
EXCLUDED = re.compile(r"node_modules/|_test\.go$|^tools/words\.|^CHANGELOG\.md$")

VALUE = "…"  # stands for a value that is put into a text, and for code
ITEM = re.compile(r"[|>]|[-*] |\d+\. ")  # begins a paragraph of its own
C_LIKE = re.compile(  # comments and texts of Go and JavaScript
    r"(?P<comment>(?://[^\n]*(?:\n[ \t]*(?=//))?)+|/\*.*?\*/)|'(?:\\.|[^'\\\n])'"
    r"""|(?P<text>(?:(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`[^`]*`)(?:\s*\+\s*(?=["'`]))?)+)""",
    re.DOTALL,
)
SHELL = re.compile(  # comments and texts of scripts, the help of a Makefile's targets
    r"^(?P<comment>[ \t]*#[^\n]*(?:\n[ \t]*#[^\n]*)*)"
    r"""|(?P<text>"(?:\\.|[^"\\])*"|'[^']*')|\#\#(?P<help>[^\n]*)""",
    re.MULTILINE,
)


class Prose(NamedTuple):
    """A paragraph on one line, and where in it each of the file's lines begins."""

    text: str
    starts: list[int]
    lines: list[int]

    def line(self, column: int) -> int:
        """Return the line of the file that column `column` of the paragraph is from."""
        return max(line for start, line in zip(self.starts, self.lines, strict=True) if start <= column)


def check(root: Path) -> list[str]:
    """Return what textlint finds in the tree `root`, each with file, line and reason."""
    taken = list(prose(root))
    program = (NODE / "node_modules/.bin/textlint", "--config", NODE / ".textlintrc.json", "--format", "json")
    done = subprocess.run(
        [*program, "--stdin", "--stdin-filename", "words.txt"],
        input="\n".join(each.text for _, each in taken),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1) or not done.stdout:
        return [f"textlint failed: {done.stderr}"]
    found = []
    for message in json.loads(done.stdout)[0]["messages"] if done.stdout.strip() else ():
        path, paragraph = taken[message["line"] - 1]
        words, _, why = message["message"].partition("\n")
        found.append(f"{path}:{paragraph.line(message['column'] - 1)}: {words} ({why.removesuffix('.')})")
    return found


def prose(root: Path) -> Iterator[tuple[str, Prose]]:
    """Return every paragraph of two words or more, with the file that it is in."""
    for path in sorted(
        {path for pattern in FILES + DOCS for path in root.glob(pattern) if path.suffix in READERS}
    ):
        name = path.relative_to(root).as_posix()
        if path.is_file() and not EXCLUDED.search(name):
            for paragraph in READERS[path.suffix](path.read_text(encoding="utf-8")):
                text = re.sub(r"``.+?``|`[^`]+`", lambda code: VALUE * len(code[0]), paragraph.text)
                if re.search(r"[A-Za-z] \S", text):
                    yield name, paragraph._replace(text=text)


def paragraphs(line: int, text: str) -> Iterator[Prose]:
    """Return the paragraphs of `text`, which begins at `line`."""
    paragraph = Prose("", [], [])
    for number, piece in enumerate(text.split("\n"), line):
        words = " ".join(piece.split())
        if paragraph.text and (not words or ITEM.match(words)):
            yield paragraph
            paragraph = Prose("", [], [])
        if words:
            glue = " " if paragraph.text else ""
            starts, lines = [*paragraph.starts, len(paragraph.text)], [*paragraph.lines, number]
            paragraph = Prose(paragraph.text + glue + words, starts, lines)
    if paragraph.text:
        yield paragraph


def python_prose(source: str) -> Iterator[Prose]:
    """Return the docstrings and all other texts of Python."""
    left: list[ast.AST] = [ast.parse(source)]
    while left:
        node = left.pop()
        if isinstance(node, ast.JoinedStr):
            values = [part for part in node.values if isinstance(part, ast.FormattedValue)]
            left += (part.value for part in values)
            texts = (str(part.value) if isinstance(part, ast.Constant) else VALUE for part in node.values)
            yield from paragraphs(node.lineno, "".join(texts))
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield from paragraphs(node.lineno, node.value)
        else:
            left += ast.iter_child_nodes(node)


def c_like_prose(source: str) -> Iterator[Prose]:
    """Return the comments and texts of Go or JavaScript."""
    for match in C_LIKE.finditer(source):
        if match["comment"]:
            text = re.sub(r"^[ \t]*(//|/?\*+/?)", "", match["comment"], flags=re.MULTILINE)
        else:
            text = re.sub(r"[\"'`]\s*\+\s*[\"'`]", "", match["text"] or "")[1:-1]
            text = re.sub(
                r"%[-+#0-9.]*[a-zA-Z]|\$\{[^}]*\}", VALUE, text.replace("\\n", "\n").replace('\\"', '"')
            )
        yield from paragraphs(source.count("\n", 0, match.start()) + 1, text)


def shell_prose(source: str) -> Iterator[Prose]:
    """Return the comments and texts of a shell script, and the help of a Makefile's targets."""
    for match in SHELL.finditer(source):
        text = re.sub(r"^[ \t]*#+", "", match["comment"] or "", flags=re.MULTILINE)
        text = text or match["help"] or (match["text"] or "").strip("\"'")
        yield from paragraphs(source.count("\n", 0, match.start()) + 1, text)


def page_prose(source: str) -> Iterator[Prose]:
    """Return what a page shows: its text, and the attributes that are read out."""
    text = re.sub(r"\{%.*?%\}", " ", re.sub(r"\{\{.*?\}\}", VALUE, source))
    for number, line in enumerate(text.split("\n"), 1):
        for shown in re.findall(r'(?:aria-label|title|placeholder|alt)="([^"]*)"', line):
            yield from paragraphs(number, shown)
        yield from paragraphs(number, re.sub(r"<[^>]*>", " ", line))


def markdown_prose(source: str) -> Iterator[Prose]:
    """Return the paragraphs of Markdown, without code and without the targets of links."""
    code = r"^ *```.*?^ *```|\]\([^)]*\)|<!--.*?-->"
    text = re.sub(code, lambda match: "\n" * match[0].count("\n"), source, flags=re.DOTALL | re.MULTILINE)
    return paragraphs(1, text.replace("[", ""))


def printed_prose(source: str) -> Iterator[Prose]:
    """Return each line of what a program printed."""
    return (Prose(line, [0], [number]) for number, line in enumerate(source.splitlines(), 1))


READERS: dict[str, Callable[[str], Iterator[Prose]]] = {
    ".py": python_prose,
    ".go": c_like_prose,
    ".js": c_like_prose,
    ".html": page_prose,
    ".md": markdown_prose,
    ".txt": printed_prose,
    "": shell_prose,
}


def main(arguments: Sequence[str]) -> int:
    """Print what is found, or with `print` the prose itself."""
    if arguments == ["print"]:
        print(*(f"{path}:{each.lines[0]}: {each.text}" for path, each in prose(ROOT)), sep="\n")
        return 0
    found = check(Path(arguments[0]) if arguments else ROOT)
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
