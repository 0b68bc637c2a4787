"""Secrets are taken out of whatever is kept: command lines, addresses, replies."""

import re

REDACTED = "REDACTED"
_WORD = r"api[_-]?key|token|secret|password|passwd|session|csrf|xsrf|auth|credential|signature"
_PARAMETER = re.compile(
    rf"(?i)([?&]|\b)(key|pwd|pass|sig|code|_?wpnonce|nonce|sid|[\w-]*(?:{_WORD})[\w-]*)(=|%3D)[^&#\s\"']+"
)
_HEADER = re.compile(rf"(?im)^(\s*(?:cookie2?|set-cookie|x-wp-nonce|[\w-]*(?:{_WORD})[\w-]*)\s*:).*$")
_USER_INFO = re.compile(r"(://)[^/?#\s]*@")


def redacted(text: str) -> str:
    """Return `text` without the values of secret headers and parameters, or user info in addresses."""
    text = _HEADER.sub(rf"\1 {REDACTED}", text)
    text = _USER_INFO.sub(rf"\1{REDACTED}@", text)
    return _PARAMETER.sub(rf"\1\2\3{REDACTED}", text)


def redacted_command(arguments: list[str]) -> list[str]:
    """Return a command line, each argument redacted."""
    return [redacted(argument) for argument in arguments]
