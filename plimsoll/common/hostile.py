"""Text from a run directory is hostile: logs hold what attackers typed. It is made harmless here.

HTML is escaped by the templates (Jinja's autoescape); plotly, Markdown and terminals need rules of their own.
"""

import json
import re
import unicodedata

# Invisible or direction-changing characters: categories "other" (control, format, surrogate, private use,
# unassigned) and the line and paragraph separators.
_UNPRINTABLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_LONGEST = 300
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|~^:@$=])")


def printable(text: str, longest: int = _LONGEST) -> str:
    r"""Return `text` with every control, format and bidirectional character spelled out (`\x1b`, `\u202e`).

    Text longer than `longest` characters is cut and ends in an ellipsis.
    """
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    return "".join(_spelled(c) if unicodedata.category(c) in _UNPRINTABLE else c for c in text)


def plotly_text(text: str, longest: int = 80) -> str:
    """Return `text` so that plotly shows it as it is.

    Plotly reads a subset of HTML in every label (also links and styles), decodes entities, and replaces
    `%{…}` in hover templates. An entity in place of each special character leaves nothing to interpret.
    """
    safe = printable(text, longest)
    for character, entity in (
        ("&", "&amp;"),
        ("<", "&lt;"),
        (">", "&gt;"),
        ("%{", "%&#123;"),
        ("$", "&#36;"),
    ):
        safe = safe.replace(character, entity)
    return safe


def markdown_text(text: str, longest: int = 300) -> str:
    """Return `text` so that Markdown shows it as it is: no link, no mention, no HTML, no image, one line."""
    shown = printable(text, longest).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    shown = _MARKDOWN.sub(r"\\\1", shown)
    # GitHub mentions, links and closes in spite of a backslash: an invisible comment keeps the words apart.
    shown = shown.replace(r"\@", "@<!-- -->").replace("\\#", "#<!-- -->")
    return re.sub(r"(?i)(https?|ftp|www|mailto)(?=\\[:.])", r"\1<!-- -->", shown)


def script_json(value: object) -> str:
    """Return `value` as JSON that can stand in an HTML `<script>` element: nothing in it can end the element.

    Raises ValueError for NaN and infinities, which are no JSON.
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _spelled(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
