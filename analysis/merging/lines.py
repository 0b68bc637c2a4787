"""The instances of a merged run as a table for the terminal."""

from collections.abc import Sequence
from typing import Any

from analysis.hostile import printable
from analysis.models import Instance
from analysis.units import count, plain_ms

_HEAD = f"{'instance':<34} {'status':<11} {'sent':>11} {'unsent':>11} {'lag p99.9 ms':>12} {'p99.9 ms':>11}"


def instance_lines(instances: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line for each of summary.json's `instances`, under a head; what is not known is a dash."""
    return [_HEAD, *(_line(Instance.model_validate(one)) for one in instances)]


def _line(one: Instance) -> str:
    counts = f"{count(one.sent):>11} {count(one.unsent):>11}"
    times = f"{plain_ms(one.lag_ms.p999):>12} {plain_ms(one.response_ms.p999):>11}"
    return f"{printable(one.name, 34):<34} {one.status:<11} {counts} {times}"
