"""The command lines around `pace`, and what it prints. Pure."""

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from plimsoll.lab.names import own_name
from plimsoll.lab.saturators.sinks import AnySink, LocalSink, RamDiskSink, RemoteSink, at_receiver

_TOTAL = re.compile(r"(bytes|received) ([0-9]{1,18})", re.ASCII)


@cache
def _source() -> str:
    return Path(__file__).with_name("copier.py").read_text(encoding="utf-8")


def paced(
    command: Sequence[str],
    sink: AnySink,
    rate_bytes_per_s: int | None,
    label: str,
    receive: Sequence[str] | None,
) -> list[str]:
    """Return `command` with its output copied to `sink`; `receive` is what one that receives runs."""
    words = _copier(rate_bytes_per_s)
    if isinstance(sink, RamDiskSink):
        words += [f"--to={ram_file(sink, label)}", f"--wrap={sink.size_bytes}"]
    elif isinstance(sink, LocalSink | RemoteSink) and receive:
        words.append(f"--into={json.dumps(at_receiver(sink, receive))}")
    return [*words, "--", *command]


def written(command: Sequence[str], file: str | None, rate_bytes_per_s: int | None = None) -> list[str]:
    """Return `command` with its output written to `file`, or thrown away, and counted on the way."""
    to = [f"--to={file}"] if file else []
    return [*_copier(rate_bytes_per_s), *to, "--", *command]


def _copier(rate_bytes_per_s: int | None) -> list[str]:
    rate = [f"--rate={rate_bytes_per_s}"] if rate_bytes_per_s else []
    return ["python3", "-c", _source(), *rate]


def counted(receive: Sequence[str]) -> list[str]:
    """Return `receive` behind a copier that counts what it took, where it runs: as `received N`."""
    return ["python3", "-c", _source(), "--word=received", f"--into={json.dumps(list(receive))}", "--", "cat"]


def ram_file(sink: RamDiskSink, label: str) -> str:
    """Return the file on the RAM disk."""
    return f"{sink.folder.rstrip('/')}/{own_name(label)}.stream"


def paced_total(line: str, word: str = "bytes") -> int | None:
    """Return the bytes so far, from a line of the copier with that word; None if it is another line."""
    found = _TOTAL.fullmatch(line)
    return int(found[2]) if found and found[1] == word else None
