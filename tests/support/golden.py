"""Golden files: what a user sees, kept as text. `make golden` writes them anew; review the diff.

A page is kept as what a reader sees, words and numbers, so that a redesign changes little of it; a command as
a person types it, with its exit code and all that it printed.
"""

import contextlib
import io
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from lxml import html

from tests.support.programs import LONGEST_S, REPLAY, ROOT, need

GOLDEN = Path(__file__).parent.parent / "golden"


def check_golden(name: str, found: str) -> None:
    """Hold a text against ``tests/golden/NAME``, line by line; with UPDATE_GOLDEN=1 write it there.

    Raises:
        AssertionError: with the lines that differ.
    """
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found)
    wanted = path.read_text() if path.exists() else ""
    lines = unified_diff(wanted.splitlines(), found.splitlines(), "as it was", "as it is", lineterm="", n=2)
    if diff := "\n".join(lines):
        raise AssertionError(f"{name} is no longer as it was; wanted? make golden\n{diff}")


# Pages: each block of text is a line, each row of a table `a | b | c`, and each figure its traces, thinned.

SHOWN = 8  # values of a trace's row that are shown
DIGITS = 6
_UNSEEN = {"script", "style", "svg", "noscript", "button", "template"}
_INLINE = {"a", "abbr", "b", "br", "code", "em", "i", "kbd", "label", "small", "span", "strong", "sub", "sup"}


def page_text(page: str) -> str:
    """Return a page of Plimsoll as lines of text."""
    tree = html.fromstring(page.encode(), parser=html.HTMLParser(encoding="utf-8", huge_tree=True))
    figures = json.loads(tree.get_element_by_id("figures").text or "{}")
    lines = [f"title: {tree.findtext('.//title')}", *_lines(tree.find("body"), figures)]
    return "\n".join(line for line in lines if line.strip(" |"))


def rounded(value: Any, digits: int) -> Any:
    """Return a value of JSON with all its numbers that have a fraction rounded to significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, dict):
        return {key: rounded(each, digits) for key, each in value.items()}
    return [rounded(each, digits) for each in value] if isinstance(value, list) else value


def json_text(value: Any, indent: str = "") -> str:
    """Return JSON with a line for whatever fits on one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent + line) <= 110 or not isinstance(value, dict | list):
        return line
    deeper = indent + " "
    if isinstance(value, list):
        parts = [json_text(each, deeper) for each in value]
    else:
        parts = [f"{json.dumps(key)}: {json_text(each, deeper)}" for key, each in value.items()]
    ends = "[]" if isinstance(value, list) else "{}"
    return f"{ends[0]}\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}{ends[1]}"


def _lines(block: Any, figures: dict[str, Any]) -> Iterator[str]:
    words = _squeezed(block.text)
    for child in block:
        if child.tag in _INLINE and not any(each.tag not in _INLINE | _UNSEEN for each in child.iter()):
            words += " " * (child.tag in ("small", "span")) + "".join(_seen(child))
        elif isinstance(child.tag, str) and child.tag not in _UNSEEN:
            if words.strip():
                yield _line(block.tag, words)
            words = ""
            yield from _block(child, figures)
        words += _squeezed(child.tail)
    if words.strip():
        yield _line(block.tag, words)


def _block(block: Any, figures: dict[str, Any]) -> Iterator[str]:
    name = (block.get("id") or "").removeprefix("figure-")
    if block.tag == "tr":
        yield " | ".join(" ".join("".join(_spaced(cell)).split()) for cell in block)
    elif block.tag == "dl":
        for pair in block.iter("dt"):
            yield f"{_joined(pair)}: {_joined(pair.getnext())}"
    elif name in figures:
        yield from _figure(name, figures[name])
    else:
        yield from _lines(block, figures)


def _line(tag: str, words: str) -> str:
    mark = {"h1": "# ", "h2": "## ", "h3": "### ", "li": "- "}.get(tag, "")
    return mark + " ".join(words.split())


def _seen(element: Any) -> Iterator[str]:
    """Yield the text inside an element, without what is drawn or run."""
    if element.tag in _UNSEEN or not isinstance(element.tag, str):
        return
    yield " " if element.tag == "br" else element.text or ""
    for child in element:
        yield from _seen(child)
        yield child.tail or ""


def _spaced(element: Any) -> Iterator[str]:
    """Yield the same with a space between its parts, which in a cell stand below each other."""
    if element.tag in _UNSEEN or not isinstance(element.tag, str):
        return
    yield element.text or ""
    for child in element:
        yield " "
        yield from _spaced(child)
        yield child.tail or ""


def _joined(element: Any) -> str:
    return " ".join("".join(_spaced(element)).split())


def _squeezed(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "")


def _figure(name: str, figure: dict[str, Any]) -> Iterator[str]:
    yield f"[figure {name}: {figure.get('title')}]"
    for key, axis in figure.get("layout", {}).items():
        if re.fullmatch(r"[xy]axis\d*", key) and isinstance(axis, dict):
            title = axis.get("title")
            text = title.get("text") if isinstance(title, dict) else title
            range_ = [_value(each) for each in axis.get("range") or []]
            yield "  " + " ".join([f"{key}: {text or '–'}", axis.get("type", ""), *range_]).rstrip()
    for note in figure.get("layout", {}).get("annotations", []):
        yield f"  note: {_bare(note.get('text', ''))}"
    for trace in figure.get("data", []):
        yield f"  {trace.get('type', 'scatter')} {_bare(str(trace.get('name') or '–'))}"
        for row in ("x", "y", "z", "text", "customdata"):
            if isinstance(trace.get(row), list) and trace[row]:
                yield f"    {row}: {_thinned(trace[row])}"
        if hover := trace.get("hovertext"):
            yield f"    hover: {_bare(str(hover[0] if isinstance(hover, list) else hover))}"


def _thinned(row: list[Any]) -> str:
    if isinstance(row[0], list):
        row = [each for inner in row for each in inner]
    step = max(1, -(-len(row) // SHOWN))
    numbers = [each for each in row if isinstance(each, int | float) and not isinstance(each, bool)]
    ends = f"; {_value(min(numbers))} to {_value(max(numbers))}" if numbers and step > 1 else ""
    return f"{len(row)} points: " + ", ".join(_value(each) for each in row[::step]) + ends


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.{DIGITS}g}"
    return "–" if value is None else _bare(str(value))


def _bare(text: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())


# Commands. `plimsoll` is called in this process. Scenarios import Locust, which patches the process that it
# is in: their lines go together into a process of their own, `python -m tests.support.golden`.

Row = tuple[str, str]  # a sentence, and the command line; `printf … |` before it gives the command its input
Said = tuple[int, str, str]  # exit code, standard output, standard error

# make in this checkout, which is built and set up: what that says would be another each time.
_MAKE = ("-C", str(ROOT), "--no-print-directory", "-o", "build", "-o", ".venv/.runtime", "together=@:")
# Variables, what the command gets as its input, and the command.
_LINE = re.compile(r"((?:[A-Z_]+=\S+ )*)(?:printf '([^']*)' \| )?(.*)", re.DOTALL)


def settle(folder: Path, patch: pytest.MonkeyPatch, programs: Iterable[str] = ()) -> None:
    """Go to an empty folder that has the examples, with an environment that is the same on every machine.

    On the PATH are `programs` alone, and what the lab takes for granted on every host.
    """
    for name in [
        name for name in os.environ if name.startswith(("PLIMSOLL", "XDG_", "LC_", "MAKE", "MFLAGS"))
    ]:
        patch.delenv(name)
    stubs = folder / "bin"
    stubs.mkdir()
    for name in (
        "sh",
        "env",
        "cat",
        "rm",
        "mkdir",
        "printf",
        "tee",
        "dirname",
        "realpath",
        "setsid",
        *programs,
    ):
        (stubs / name).symlink_to(shutil.which(name) or "/bin/true")
    for name, text in (("id", "echo 0"), ("flock", "exit 0")):
        (stubs / name).write_text(f"#!/bin/sh\n{text}\n")
        (stubs / name).chmod(0o755)
    settings = {"PATH": stubs, "HOME": folder, "USER": "me", "LANG": "C.UTF-8", "TZ": "UTC", "COLUMNS": "100"}
    for name, value in settings.items():
        patch.setenv(name, str(value))
    patch.chdir(folder)
    (folder / "examples").symlink_to(ROOT / "examples")


def transcript(rows: Sequence[Row], said: Sequence[Said], shown: dict[str, str] | None = None) -> str:
    """Return all rows with what was said, in which what is another each time is a word.

    `shown` has further patterns, each with what stands for it.
    """
    patterns = {
        re.escape(str(Path.cwd())): "/here",
        re.escape(str(Path(sys.executable).parent)): "/plimsoll/.venv/bin",
        re.escape(str(ROOT)): "/plimsoll",
        r"\b20\d{6}T\d{6}Z((?:-[a-z]+)*)(?:-\d+)?\b": r"20261126T120000Z\1",
        r"(The gates were written at) [^.]*\.": r"\1 2026-11-26 12:00:00 UTC.",
        r"(the\s+first\s+at) 20[-\\\d]+ [:\\\d]+": r"\1 2026-11-26 12:00:00",
        r'("after_runs":) (true|false)': r"\1 true",
    }
    parts = []
    for (why, line), (code, out, err) in zip(rows, said, strict=True):
        errors = "".join(f"stderr: {each}\n" for each in err.splitlines())
        printed = f"{out.rstrip()}\n" if out.strip() else ""
        parts.append(f"# {why}\n$ {line}\nexit {code}\n{printed}{errors}")
    text = "\n".join(parts)
    for pattern, word in (patterns | (shown or {})).items():
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def run(rows: Sequence[Row]) -> list[Said]:
    """Return what each row's command says: those of `plimsoll` in this process, others in their own."""
    return [_said(line) for _, line in rows]


def run_with_locust(rows: Sequence[Row]) -> list[Said]:
    """Return what each row's command says, all in one process that has Locust."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.support.golden"],
        input=json.dumps([line for _, line in rows]),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=LONGEST_S,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    return [(code, out, err) for code, out, err in json.loads(ran.stdout)]


def _said(line: str) -> Said:
    parts = _LINE.fullmatch(line)
    assert parts, line
    settings, given, command = parts.groups()
    with pytest.MonkeyPatch.context() as patch:
        for setting in shlex.split(settings or ""):
            patch.setenv(*setting.split("=", 1))
        return _ran(shlex.split(command), (given or "").replace("\\n", "\n"))


def _ran(words: list[str], given: str) -> Said:
    if words[0] == "plimsoll":
        from click.testing import CliRunner

        from plimsoll.cli import main

        done = CliRunner().invoke(main, words[1:], input=given, prog_name="plimsoll")
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.stdout, done.stderr
    if words[0] == "cd":
        os.chdir(words[1])
        return 0, "", ""
    if words[0] == "replay":
        words = [need(REPLAY), *words[1:]]
    path = os.environ["PATH"]
    if words[0] == "make":
        words, path = ["make", *_MAKE, f"OUT={Path.cwd() / 'results'}", *words[1:]], os.defpath
    ran = subprocess.run(
        words,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_S,
        env=os.environ | {"PATH": path},
    )
    return ran.returncode, ran.stdout, ran.stderr


def _answer_with_locust() -> None:
    """Say what each line of a list says, in JSON both, in this process."""
    import locust  # noqa: F401 it patches ssl and subprocess, and has to come before whatever else loads those

    class Here(subprocess.Popen):  # type: ignore[type-arg]
        """Runs the module of scenarios, which the lab starts, here, where Locust is: that saves a second."""

        def __init__(self, words: Any, *rest: Any, **options: Any) -> None:
            self._module = list(words[1:]) if list(words[:2]) == [sys.executable, "-m"] else []
            super().__init__(["/bin/true"] if self._module else words, *rest, **options)

        def communicate(self, given: Any = None, timeout: float | None = None) -> Any:
            said = super().communicate(None if self._module else given, timeout)
            return (_printed_by(self._module, given), "") if self._module else said

    subprocess.Popen = Here  # type: ignore[assignment,misc]
    json.dump([_said(each) for each in json.load(sys.stdin)], sys.stdout)


def _printed_by(module: list[str], given: str) -> str:
    before = sys.argv, sys.stdin
    sys.argv, sys.stdin = module[1:], io.StringIO(given)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.suppress(SystemExit):
            runpy.run_module(module[1], run_name="__main__")
    finally:
        sys.argv, sys.stdin = before
    return printed.getvalue()


if __name__ == "__main__":
    _answer_with_locust()
