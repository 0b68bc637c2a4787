"""A server's reply."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import lxml.html

_CPU = re.compile(r"(?:^|,)\s*cpu\s*;[^,]*?dur=([0-9.]+)")


@dataclass(frozen=True)
class Reply:
    """A whole response. `body` is empty if the caller took it piece by piece; header names are lower case."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    total_us: int

    @cached_property
    def text(self) -> str:
        """The body as text; bytes that are not UTF-8 are replaced."""
        return self.body.decode("utf-8", errors="replace")

    @cached_property
    def page(self) -> lxml.html.HtmlElement:
        """The body as HTML; an empty page if it has none."""
        text = self.text.replace("\0", "").strip()
        return lxml.html.document_fromstring(text or "<html><body></body></html>", base_url=self.url)

    @cached_property
    def data(self) -> Any:
        """The body as JSON; None if it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def location(self) -> str:
        """The target of a redirect; empty if the reply is not one."""
        return self.headers.get("location", "") if 300 <= self.status < 400 else ""

    @property
    def server_cpu_ms(self) -> float | None:
        """CPU time from the header `Server-Timing: cpu;dur=…` (W3C Server Timing); None without it."""
        found = _CPU.search(self.headers.get("server-timing", ""))
        try:
            return float(found[1]) if found else None
        except ValueError:
            return None
