"""What comes from outside, made harmless: text to be shown, secrets in it, numbers to compute with.

Text from a run directory is hostile: logs hold what attackers typed. HTML is escaped by the templates
(Jinja's autoescape); plotly, Markdown and terminals need rules of their own.
"""

import json
import re
import unicodedata
from typing import TypeGuard
from urllib.parse import unquote_plus

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
    if text.isprintable():  # as most is
        return text
    return "".join(_escape_character(c) if unicodedata.category(c) in _UNPRINTABLE else c for c in text)


def _escape_character(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


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

    Raises ValueError for NaN and infinities, which are not JSON.
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


REDACTED = "REDACTED"

# Names of headers, parameters and flags whose values are secrets: words that are enough anywhere in a name,
# and short ones that count only at its end. replay/redact/redact.go has the same, and one table holds both to
# it: tests/fixtures/secrets.json.
_NAME = (
    r"(?:(?>[\w-]*?(?:token|secret|passw(?:or)?d|passphrase|sess(?:ion|id)|csrf|xsrf|credential|signature|cookie|nonce|"
    r"jwt|bearer|api[_-]?key|auth(?:[a-np-z0-9_-]|ori[sz]|\b)))[\w-]*+|(?:[\w-]*[_-])?(?:key|pwd|pass|sig|sid|otp))"
)
# A name is looked for only where one begins, and only once: hostile text takes no longer than other text.
_HEADER = re.compile(rf"(?aim)^([ \t]*{_NAME}[ \t]*:).*$")
_SCHEME = re.compile(r"(?aim)^([ \t]*[\w-]+[ \t]*:[ \t]*(?:bearer|basic))[ \t]+\S.*$")
_PARAMETER = re.compile(rf"(?ai)(^|[^\w-]|%[0-9a-f]{{2}})({_NAME}|code)(=|%3D)[^&#\s\"']+")
_USER_INFO = re.compile(r"(?a)(://)[^/?#\s]*@")
_ANY_PARAMETER = re.compile(r"(?a)([?&])([^=&?#\s]*)=[^&#\s\"']+")
_WHOLE_NAME = re.compile(f"(?ai){_NAME}|code")
_FLAG = re.compile(r"(-H=?|--header=)?(.*)", re.DOTALL)


def redact(text: str) -> str:
    """Return `text` without the values of secret headers and parameters, or user info in addresses."""
    text = _HEADER.sub(rf"\1 {REDACTED}", text)
    text = _SCHEME.sub(rf"\1 {REDACTED}", text)
    text = _USER_INFO.sub(rf"\1{REDACTED}@", text)
    text = _PARAMETER.sub(rf"\1\2\3{REDACTED}", text)
    return _ANY_PARAMETER.sub(_redact_by_name, text)


def redact_command(arguments: list[str]) -> list[str]:
    """Return a command line, each argument redacted."""
    return [_redact_argument(argument) for argument in arguments]


def _redact_argument(argument: str) -> str:
    flag, value = _FLAG.fullmatch(argument).groups("")  # type: ignore[union-attr]  # it matches everything
    return str(flag) + redact(str(value))


def _redact_by_name(pair: re.Match[str]) -> str:
    start, name = pair.groups()
    return f"{start}{name}={REDACTED}" if _WHOLE_NAME.fullmatch(unquote_plus(name)) else pair.group()


# Sums, squares and ratios of very many such figures are finite; no measure comes near it.
LARGEST_FIGURE = 1e21
_SMALLEST_FIGURE = 1 / LARGEST_FIGURE


def is_figure(value: object) -> TypeGuard[int | float]:
    """Return whether `value` is a number that can be summed, squared and divided by. Pure."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    # not NaN, nor an int that no float holds
    return value == 0 or _SMALLEST_FIGURE <= abs(value) <= LARGEST_FIGURE
