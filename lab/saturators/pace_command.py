"""The command lines around `pace`, and what it prints. Pure."""

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from lab.names.snapshots import own_name
from lab.saturators.sinks import NullSink, RamDiskSink, RemoteSink, over_ssh

_TOTAL = re.compile(r"bytes ([0-9]{1,18})", re.ASCII)


@cache
def _source() -> str:
    return Path(__file__).with_name("pace.py").read_text(encoding="utf-8")


def paced(
    command: Sequence[str],
    sink: NullSink | RamDiskSink | RemoteSink,
    rate_bytes_per_s: int | None,
    label: str,
    receive: Sequence[str] | None,
) -> list[str]:
    """Return `command` with its output copied to `sink`; `receive` is what a remote one runs."""
    words = ["python3", "-c", _source()]
    if rate_bytes_per_s:
        words.append(f"--rate={rate_bytes_per_s}")
    if isinstance(sink, RamDiskSink):
        words += [f"--to={ram_file(sink, label)}", f"--wrap={sink.size_bytes}"]
    elif isinstance(sink, RemoteSink) and receive:
        words.append(f"--into={json.dumps(over_ssh(sink, receive))}")
    return [*words, "--", *command]


def ram_file(sink: RamDiskSink, label: str) -> str:
    """Return the file on the RAM disk."""
    return f"{sink.folder.rstrip('/')}/{own_name(label)}.stream"


def paced_total(line: str) -> int | None:
    """Return the bytes so far, from a line of pace's output; None if it is another line."""
    found = _TOTAL.fullmatch(line)
    return int(found[1]) if found else None
