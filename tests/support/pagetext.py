"""Pages for golden files: what a reader sees, as words and numbers, so that a redesign changes little of it.

Each block of text is a line, each row of a table `a | b | c`, and each figure its traces, thinned.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from lxml import html

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
