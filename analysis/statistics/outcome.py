"""The outcome of a run, as a few lines for the terminal."""

from pathlib import Path

from analysis.statistics.run import measure
from plimsoll.common.errors import NoRequestsError
from plimsoll.common.hostile import printable
from plimsoll.common.units import ABSENT, count, plain_ms, significant
from plimsoll.rundir.directory import RunDirectory, read_facts

_HEAD = f"{'step':<34} {'requests':>9} {'failed':>7} {'p50 ms':>11} {'p99 ms':>11} {'max ms':>11}"


def outcome_lines(directory: Path) -> list[str]:
    """Return a table of the steps, one of the measures, and how the run ended."""
    lines: list[str] = []
    try:
        run = RunDirectory.open(directory)
    except NoRequestsError:
        facts = read_facts(directory)
        return [f"{facts.status}: {printable(str(facts.reason))}", f"Run directory: {directory}"]
    figures = measure(run)
    lines.append(_HEAD)
    for name, route in figures.routes.items():
        times = route.response_ms
        step = printable(name.partition(" ")[2], 34)
        lines.append(
            f"{step:<34} {count(route.requests):>9} {count(route.failures):>7} "
            + " ".join(f"{times.shown(name, plain_ms):>11}" for name in ("p50", "p99", "max"))
        )
    measures = run.summary.measures if run.summary else {}
    if measures:
        lines += ["", f"{'measure':<34} {'n':>9} {'unit':>7} {'p50':>11} {'mean':>11} {'max':>11}"]
    for name, one in measures.items():
        shown = (ABSENT if value is None else significant(value, 4) for value in (one.p50, one.mean, one.max))
        p50, mean, largest = shown
        lines.append(
            f"{printable(name, 34):<34} {count(one.count):>9} {printable(one.unit, 7):>7} "
            f"{p50:>11} {mean:>11} {largest:>11}"
        )
    failed = [f"{kind} {number}" for kind, number in figures.errors.items()]
    lines.append("")
    if failed:
        lines.append("errors: " + ", ".join(failed) + " (events.jsonl has the site's words)")
    reason = f": {printable(run.facts.reason)}" if run.facts.reason else ""
    return [*lines, f"{run.status}{reason}", f"Run directory: {directory}"]
