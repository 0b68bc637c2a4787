"""Pages that Plimsoll wrote, recognised by how they begin. Pure."""

import html
import re

from plimsoll.serve.items import Kind

HEAD_BYTES = 4096  # the title stands before the style sheet
_TITLE = re.compile(rb"<title>([^<]{1,2000}) \xe2\x80\x93 Plimsoll</title>")
_POLICY = b'<meta http-equiv="Content-Security-Policy"'
_VERDICT = r"(PASS|FAIL|INCONCLUSIVE)"


def recognised(head: bytes) -> tuple[Kind, str, str | None] | None:
    """Return kind, title and verdict of a page by its first bytes; None of a page of somebody else."""
    found = _TITLE.search(head)
    if found is None or _POLICY not in head:
        return None
    title = html.unescape(found[1].decode("utf-8", errors="replace"))
    if match := re.match(rf"Sign-off, {_VERDICT}: (.*)", title, re.DOTALL):
        return "sign-off", match[2], match[1]
    if match := re.fullmatch(r"([A-Z ]+): the nights", title):
        return "nights", "The nights", match[1]
    if match := re.match(rf"{_VERDICT}: (.*)", title, re.DOTALL):
        return "comparison", match[2], match[1]
    return "report", title, None
