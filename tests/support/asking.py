"""Asks an application of `plimsoll serve` without a network, as a browser would."""

import asyncio
from dataclasses import dataclass
from typing import Any

OWN = {"host": "127.0.0.1:8090", "accept": "text/html"}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def ask(
    app: Any, path: str, method: str = "GET", body: bytes = b"", headers: dict[str, str] | None = None
) -> Answer:
    """`headers` come beside those of a browser that means this server; None takes one away."""
    given = {name: value for name, value in {**OWN, **(headers or {})}.items() if value is not None}
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8090),
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    start = sent[0]
    return Answer(
        start["status"],
        {name.decode(): value.decode() for name, value in start["headers"]},
        b"".join(message.get("body", b"") for message in sent[1:]),
    )
