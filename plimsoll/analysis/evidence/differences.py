"""What two sides record of load, target, programs, machines and storage, where it differs. Pure."""

from collections.abc import Sequence
from typing import Any

from plimsoll.analysis.evidence.generator import load_facts
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.analysis.evidence.storage import Value, described, differing

_MOVING = ("datasets.compress_ratio", "disks.drive")  # from run to run; of these the first run's are compared
_MOST_VALUES = 3

Difference = tuple[str, tuple[Value, Value]]


def find_differences(baseline: Sequence[MeasuredRun], candidate: Sequence[MeasuredRun]) -> list[Difference]:
    """Return the keys whose values differ between the sides, with both (hostile); None is unknown.

    Where the runs of a side differ among themselves, its value names those that there are.
    """
    return [*_compare_circumstances(baseline, candidate), *_compare_storages(baseline, candidate)]


def _compare_circumstances(
    baseline: Sequence[MeasuredRun], candidate: Sequence[MeasuredRun]
) -> list[Difference]:
    return _compare([_describe(run) for run in baseline], [_describe(run) for run in candidate])


def _describe(run: MeasuredRun) -> dict[str, Any]:
    facts = run.directory.facts
    return {
        "target": facts.target and (facts.target.connect_to or facts.target.url),
        "program": facts.program.model_dump(),
        "generator": facts.host.model_dump(),
        "beside_server": facts.sender and facts.sender.beside_server,
        "load": load_facts(run),
    }


def _compare_storages(baseline: Sequence[MeasuredRun], candidate: Sequence[MeasuredRun]) -> list[Difference]:
    sides = [
        [described(one) for run in side if (one := run.directory.facts.storage)]
        for side in (baseline, candidate)
    ]
    if not all(sides):
        known = ["read by the lab" if side else None for side in sides]
        return [("storage", (known[0], known[1]))] if any(sides) else []
    of_first = differing([side[0] for side in sides])
    steady = {key for key, _ in differing([side[0] for side in sides], expected=_MOVING)}
    moving = [(key, (values[0], values[1])) for key, values in of_first if key not in steady]
    return [*_compare(sides[0], sides[1], _MOVING), *moving]


def _compare(
    baseline: Sequence[object], candidate: Sequence[object], expected: Sequence[str] = ()
) -> list[Difference]:
    found = []
    for key, values in differing([*baseline, *candidate], expected):
        one, other = set(values[: len(baseline)]), set(values[len(baseline) :])
        if one != other:
            found.append((key, (_sum_up(one), _sum_up(other))))
    return found


def _sum_up(values: set[Value]) -> Value:
    if len(values) == 1:
        return next(iter(values))
    shown = sorted("unknown" if value is None else str(value) for value in values)
    more = f" and {len(shown) - _MOST_VALUES} more" if len(shown) > _MOST_VALUES else ""
    return f"{' or '.join(shown[:_MOST_VALUES])}{more}"
