"""Secrets are taken out of whatever is kept: command lines, addresses, replies."""

import re
from urllib.parse import unquote_plus

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


def redacted(text: str) -> str:
    """Return `text` without the values of secret headers and parameters, or user info in addresses."""
    text = _HEADER.sub(rf"\1 {REDACTED}", text)
    text = _SCHEME.sub(rf"\1 {REDACTED}", text)
    text = _USER_INFO.sub(rf"\1{REDACTED}@", text)
    text = _PARAMETER.sub(rf"\1\2\3{REDACTED}", text)
    return _ANY_PARAMETER.sub(_by_plain_name, text)


def redacted_command(arguments: list[str]) -> list[str]:
    """Return a command line, each argument redacted."""
    return [_redacted_argument(argument) for argument in arguments]


def _redacted_argument(argument: str) -> str:
    flag, value = _FLAG.fullmatch(argument).groups("")  # type: ignore[union-attr]  # it matches everything
    return str(flag) + redacted(str(value))


def _by_plain_name(pair: re.Match[str]) -> str:
    start, name = pair.groups()
    return f"{start}{name}={REDACTED}" if _WHOLE_NAME.fullmatch(unquote_plus(name)) else pair.group()
