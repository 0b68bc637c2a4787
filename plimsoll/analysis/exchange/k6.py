"""Results of k6 become run directories."""

from datetime import UTC, datetime
from pathlib import Path

from plimsoll.analysis.exchange.deposit import ImportWriter, find_k6_limit, peek
from plimsoll.analysis.exchange.k6_assembler import K6Assembler
from plimsoll.analysis.exchange.k6_reader import K6Reader
from plimsoll.analysis.exchange.k6_sample import NS
from plimsoll.analysis.exchange.lines import ImportingError, decide_status, read_file_lines
from plimsoll.analysis.exchange.result import ImportResult
from plimsoll.analysis.statistics.summary import summarise
from plimsoll.rundir.facts import GeneratorHost, Program, RunFacts, RunTarget
from plimsoll.rundir.find import directory_name, new_directory, point_latest
from plimsoll.rundir.write import RunWriter, Status

REMEDY = "raise the executor's maxVUs, or lower its rate"


def import_k6(
    path: Path, results: Path, *, scenario: str = "k6", target: str | None = None, timeout_s: float = 60.0
) -> ImportResult:
    """Write a run directory into `results` from `path`: `k6 run --out json=FILE` or `csv=FILE`, gzip or not.

    `target` is the base URL to note (k6 does not write it), `timeout_s` k6's time-out. Raises ImportingError
    if there is no sample in `path`, OutputError if the run directory cannot be written.
    """
    reader = K6Reader(read_file_lines(path))
    first, items = peek(reader)
    if first is None:
        raise ImportingError(_nothing_in(path, reader))
    base_ns = max((first.time_ns - NS) // 1000 * 1000, 1000)
    started_at = datetime.fromtimestamp(base_ns // NS, UTC).replace(microsecond=base_ns % NS // 1000)
    assembler = K6Assembler(base_ns, timeout_s)
    directory = new_directory(results, directory_name(started_at, scenario))
    with RunWriter(directory, _facts(path, scenario, target, started_at), summarise, at_once=False) as run:
        deposit = ImportWriter(run)
        deposit.all_of(items, assembler)
        limited = find_k6_limit(run, assembler, REMEDY)
        run.update(
            loop="open" if assembler.knows_lag or assembler.dropped else "closed",
            generator_limited=limited is not None,
            generator_limited_reason=limited,
            ended_at=deposit.ended_at(),
        )
        status, reason = _ending(reader, run.target_died)
        run.finish(status, reason)
    point_latest(directory)
    notes = _notes(reader, assembler, deposit)
    return ImportResult(str(path), directory, status, reason, assembler.requests, reader.broken_count, notes)


def _ending(reader: K6Reader, died: str | None) -> tuple[Status, str | None]:
    if reader.cut_off:
        return "interrupted", f"k6 was ended while it wrote: {reader.cut_off}"
    if died:
        return "failed", died
    return decide_status(reader.broken_count, reader.line)


def _notes(reader: K6Reader, assembler: K6Assembler, deposit: ImportWriter) -> list[str]:
    notes = list(reader.broken)
    if assembler.strays:
        notes.append(f"{assembler.strays} samples belong to no request: the output begins in the middle")
    if deposit.failed_checks:
        notes.append(f"{deposit.failed_checks} checks of the script failed; see events.jsonl")
    if deposit.uncounted:
        notes.append(f"{deposit.uncounted} values of measures beyond a million each were not counted")
    if reader.whole_seconds:
        notes.append("times are whole seconds: run k6 with K6_CSV_TIME_FORMAT=rfc3339_nano, or --out json")
    return notes


def _nothing_in(path: Path, reader: K6Reader) -> str:
    if reader.line == 0:
        return f"{path}: is empty; k6 writes it with: k6 run --out json=FILE script.js"
    why = f" ({reader.broken[0]})" if reader.broken else ""
    return f"{path}: holds no sample of k6{why}; it wants what k6 run --out json=FILE writes"


def _facts(path: Path, scenario: str, target: str | None, started_at: datetime) -> RunFacts:
    return RunFacts(
        scenario=scenario,
        target=None if target is None else RunTarget(url=target),
        command=["plimsoll", "import", "k6", path.name],
        loop="closed",
        started_at=started_at,
        program=Program(name="k6"),
        host=GeneratorHost(hostname="unknown"),  # k6 ran where it ran; this machine only reads what it wrote
        scenario_settings={"imported_from": path.name},
    )
