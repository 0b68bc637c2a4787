"""What a server answered, and when."""

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
    """A whole response. `body` is empty where the caller took it as it came; header names are lower case."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    total_us: int

    @cached_property
    def text(self) -> str:
        """The body as text; what is no UTF-8 is replaced."""
        return self.body.decode("utf-8", errors="replace")

    @cached_property
    def page(self) -> lxml.html.HtmlElement:
        """The body as HTML; an empty page if there is none in it."""
        text = self.text.replace("\0", "").strip()
        return lxml.html.document_fromstring(text or "<html><body></body></html>", base_url=self.url)

    @cached_property
    def data(self) -> Any:
        """The body as JSON; None if it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def location(self) -> str:
        """Where a redirect leads; empty if it is none."""
        return self.headers.get("location", "") if 300 <= self.status < 400 else ""

    @property
    def server_cpu_ms(self) -> float | None:
        """CPU time that the server says it took (`Server-Timing: cpu;dur=…`, W3C Server Timing)."""
        found = _CPU.search(self.headers.get("server-timing", ""))
        try:
            return float(found[1]) if found else None
        except ValueError:
            return None
