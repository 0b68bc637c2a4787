"""Locust: Python with gevent, its fast HTTP client, one process, since there is one core."""

import json
from urllib.parse import urlsplit

from benchmarks.attack import Flood, NotUnderstoodError, Throughput
from benchmarks.paths import LOCUST

_SCRIPT = """from locust import FastHttpUser, constant, task


class Visitor(FastHttpUser):
    wait_time = constant(0)

    @task
    def page(self) -> None:
        self.client.get("{path}")
"""


def files(flood: Flood) -> dict[str, str]:
    return {"visitor.py": _SCRIPT.format(path=urlsplit(flood.url).path)}


def command(flood: Flood) -> list[str]:
    parts = urlsplit(flood.url)
    users = str(flood.connections)
    return [
        str(LOCUST),
        *("-f", str(flood.scratch / "visitor.py")),
        "--headless",
        *("--host", f"{parts.scheme}://{parts.netloc}"),
        *("-u", users, "-r", users),
        *("-t", f"{flood.seconds}s"),
        "--json",
        "--only-summary",
        "--skip-log",
    ]


def read(flood: Flood, out: str) -> Throughput:
    entries = json.loads(out)
    if len(entries) != 1:
        raise NotUnderstoodError("Locust printed not one entry")
    entry = entries[0]
    seconds = entry["last_request_timestamp"] - entry["start_time"]
    return Throughput(entry["num_requests"], seconds, entry["num_failures"])
