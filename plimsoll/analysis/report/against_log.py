"""What a report and a sign-off say of replays that are held against the log they replay."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from plimsoll.analysis.page.section import Row, Table
from plimsoll.analysis.report.cautions import Caution
from plimsoll.analysis.statistics.against_log import QUANTILES, HeldRun, LoggedTimes
from plimsoll.common.errors import RunDirectoryError, Severity
from plimsoll.common.units import ABSENT, count, counted, plain_ms, significant
from plimsoll.rundir.directory import RunDirectory


def held_against(log: Path, runs: Iterable[RunDirectory]) -> list[HeldRun]:
    """Hold those of `runs` that replay it against the imported log at `log`.

    Raises RunDirectoryError where `log` is no imported access log, or none of them replays it.
    """
    times = LoggedTimes.of(RunDirectory.open(log))
    held = [found for run in runs if (found := times.hold(run))]
    if not held:
        raise RunDirectoryError(
            f"{log}: none of the runs replays this log, as the sums of its text say: import the replay's log"
        )
    return held


def against_log_table(held: Sequence[HeldRun]) -> Table | None:
    """Return quantiles of the log and of the replay, by run and route; None without any run."""
    if not held:
        return None
    rows = []
    for run in held:
        for each in (run.total, *run.routes):
            name = run.run if each is run.total else f"{run.run}: {each.name}"
            cells = [count(each.requests)]
            for quantile in QUANTILES:
                ratio = each.ratios[quantile]
                cells.append(
                    f"{plain_ms(each.logged_ms[quantile])} → {plain_ms(each.replayed_ms[quantile])}"
                    + ("" if ratio is None else f" (× {significant(ratio, 2)})")
                )
            rows.append(Row(name, cells, "total" if each is run.total else ""))
    caption = (
        "Milliseconds in the log → service time under replay, of the same requests, and how many times "
        "the log's that is; not where the log's durations are too coarse to say. There is one production, so "
        "no confidence is given. Logged durations leave the network out, and have slow visitors in them."
    )
    return Table("Held against the log", caption, ["", "requests", *QUANTILES], rows)


def against_log_sentence(run: HeldRun) -> str:
    """Return how a replay compares with its log (hostile)."""
    ratios = [
        f"{name} {ABSENT if ratio is None else f'× {significant(ratio, 2)}'}"
        for name, ratio in run.total.ratios.items()
    ]
    missing = f"; {counted(run.unpaired, 'request')} not in the log" if run.unpaired else ""
    return (
        f"{run.run}, against its log ({counted(run.total.requests, 'request')}): {', '.join(ratios)}{missing}"
    )


def against_log_cautions(held: Sequence[HeldRun]) -> Iterator[Caution]:
    """Yield which replays are not as production was (hostile)."""
    for run in held:
        if run.apart:
            said = ", ".join(f"{name} is {significant(ratio, 2)} times" for name, ratio in run.apart.items())
            text = (
                f"{run.run} is not as production was: of the same requests, service time at {said} the "
                "log's. See the clone's speed, caches and processors before you trust its times."
            )
            yield Caution(Severity.WARN, text)
        if run.speed not in (None, "1"):
            text = (
                f"{run.run} was not sent at the recorded pace ({run.speed}), so its times are not those "
                "of the log's load."
            )
            yield Caution(Severity.NOTE, text)
