"""The history's rows, written and read with SQL: every method is one transaction or one query."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from plimsoll.analysis.compare.gates import MEASURE
from plimsoll.analysis.evidence.run import WHOLE, MeasuredRun, RunPhase
from plimsoll.analysis.regress.nights import (
    ChangeRow,
    Decision,
    FigureRow,
    NightFacts,
    NightKey,
    NightRow,
    RunDigest,
    RunRow,
    StoredFinding,
    instant,
)
from plimsoll.analysis.regress.schema import open_database, transaction
from plimsoll.analysis.statistics.measures import StepFigures
from plimsoll.analysis.statistics.percentiles import TimeFigures
from plimsoll.analysis.statistics.routes import RouteAnswers
from plimsoll.common.errors import Severity
from plimsoll.common.notify import Channel, Message, NotDeliveredError
from plimsoll.rundir.events import Event
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.names import REQUESTS_FILE
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import RequestFile

MOST_ATTEMPTS = 20  # nights: after that nobody waits for it
DEAD_AFTER_S = 600.0  # an attempt that has not ended by then was killed
_LAST_RUNS = 100
_LEAST_REQUESTS = 100  # of a kind, in a run, for a series of its own: as for `plimsoll compare`
# Neither sent, nor being sent by a process that lives.
_PENDING = "(delivered_at IS NULL OR (delivered_at LIKE 'since %' AND delivered_at < ?))"
_RUN = ("id", "night", "scenario", "backend", "repeat", "path", "root", "identity", "started_at")
_CHANGE = (
    *("kind", "scenario", "backend", "phase", "metric", "night", "found", "before", "after", "p"),
    *("recovered", "recovery_found"),
)


class HistoryStore:
    """An open history. Every method may raise HistoryError, by way of `open_history`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def transaction(self) -> AbstractContextManager[None]:
        """Hold the one place to write for a block; at its end all is kept, after an error nothing."""
        return transaction(self.connection)

    def stamp(self, identity: str) -> str | None:
        """Return the stamp of a run that is known and has ended; None where it is to be read."""
        row = self.connection.execute(
            "SELECT stamp, status FROM run WHERE identity = ?", (identity,)
        ).fetchone()
        return None if row is None or row["status"] == "running" else str(row["stamp"])

    def keep_night(self, night: NightFacts) -> None:
        """Keep a night that may have no run at all."""
        with self.transaction():
            self._night(night)

    def keep(self, run: RunDigest) -> None:
        """Keep a run, whole or not at all; one that is known already is replaced."""
        with self.transaction():
            night = self._night(run.night)
            self.connection.execute("DELETE FROM run WHERE identity = ?", (run.identity,))
            self.connection.execute("UPDATE night SET findings = NULL WHERE id = ?", (night,))
            cursor = self.connection.execute(
                "INSERT INTO run (identity, night, scenario, backend, repeat, started_at, status, "
                "generator_limited, unfit, program, version, host, facts, events, whole, path, root, stamp, "
                "bytes, observed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [run.identity, night, *_columns(run)],
            )
            if run.run is not None and cursor.lastrowid is not None:
                self._figures(cursor.lastrowid, run.run)

    def _night(self, night: NightFacts) -> int:
        self.connection.execute(
            "INSERT INTO night (experiment, name, started_at, planned, path) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (experiment, name) DO UPDATE SET "
            "planned = max(coalesce(planned, 0), excluded.planned), path = excluded.path "
            "WHERE excluded.planned IS NOT NULL",
            (
                *map(utf8, (night.key.experiment, night.key.name)),
                night.started_at,
                night.planned,
                utf8(night.path),
            ),
        )
        found = self.connection.execute(
            "SELECT id FROM night WHERE experiment = ? AND name = ?",
            (utf8(night.key.experiment), utf8(night.key.name)),
        ).fetchone()
        return int(found["id"])

    def _figures(self, run: int, measured: MeasuredRun) -> None:
        for name, phase in measured.phases.items():
            self.connection.execute(
                "INSERT INTO phase VALUES (?, ?, ?, ?)", (run, name, phase.requests, phase.failures)
            )
            prompt_ms = phase.prompt.response_ms.ms if phase.prompt else {}
            steps = phase.prompt.steps if phase.prompt else {}
            rows = [
                (run, name, metric, ms, "ms", 0, prompt_ms.get(metric))
                for metric, ms in phase.response_ms.ms.items()
                if ms is not None
            ]
            rows += [
                (run, name, utf8(MEASURE + step), one.median, utf8(one.unit), 1 + one.measure, prompt)
                for step, one in phase.steps.items()
                if one.median is not None
                for prompt in [steps[step].median if step in steps else None]
            ]
            self.connection.executemany("INSERT OR REPLACE INTO figure VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def experiments(self) -> list[str]:
        """Return the names (hostile) of all experiments."""
        rows = self.connection.execute("SELECT DISTINCT experiment FROM night ORDER BY experiment")
        return [str(row["experiment"]) for row in rows]

    def nights(self, experiment: str) -> list[NightRow]:
        """Return the nights of an experiment, the oldest first."""
        rows = self.connection.execute(
            "SELECT night.*, min(run.started_at) AS began FROM night LEFT JOIN run ON run.night = night.id "
            "WHERE experiment = ? GROUP BY night.id ORDER BY coalesce(began, night.started_at), name",
            (experiment,),
        )
        return [
            NightRow(
                row["id"],
                NightFacts(
                    NightKey(row["experiment"], row["name"]), row["started_at"], row["planned"], row["path"]
                ),
                bool(row["baseline"]),
                None if row["findings"] is None else _night_findings(row["findings"]),
            )
            for row in rows
        ]

    def runs(self, experiment: str | None = None) -> list[RunRow]:
        """Return the runs of an experiment, or all, in order of time."""
        rows = self.connection.execute(
            "SELECT run.*, night.findings FROM run JOIN night ON night.id = run.night "
            "WHERE ? IS NULL OR experiment = ? ORDER BY run.started_at, run.identity",
            (experiment, experiment),
        )
        return [
            RunRow(
                **{name: row[name] for name in _RUN},
                size_bytes=row["bytes"],
                unfit=tuple(json.loads(row["unfit"])),
                readable=bool(row["whole"]),
                pruned=row["pruned_at"] is not None,
                censored=_censored_names(row["whole"]),
                refused=tuple(
                    each.text
                    for each in _night_findings(row["findings"])
                    if each.disqualifies and row["id"] in each.runs
                ),
                routes=_frequent_routes(row["observed"]),
            )
            for row in rows
        ]

    def figures(self, experiment: str, metrics: Sequence[str]) -> Iterator[FigureRow]:
        """Yield the figures of the given metrics."""
        marks = ", ".join("?" * len(metrics))
        rows = self.connection.execute(
            "SELECT figure.* FROM figure JOIN run ON run.id = figure.run "  # noqa: S608 question marks alone
            f"JOIN night ON night.id = run.night WHERE experiment = ? AND metric IN ({marks})",
            (experiment, *metrics),
        )
        for row in rows:
            yield FigureRow(*(row[name] for name in FigureRow._fields))

    def time_measures(self, experiment: str) -> list[str]:
        """Return the metrics (hostile) of measures in milliseconds that any of the last runs has."""
        rows = self.connection.execute(
            "SELECT DISTINCT metric FROM figure WHERE measure > 0 AND unit = 'ms' AND run IN (SELECT run.id "
            "FROM run JOIN night ON night.id = run.night WHERE experiment = ? ORDER BY run.started_at DESC "
            "LIMIT ?)",
            (experiment, _LAST_RUNS),
        )
        return [str(row["metric"]) for row in rows]

    def error_shares(self, experiment: str) -> Iterator[tuple[int, float]]:
        """Yield (run, share of failed requests), of every run that has requests."""
        rows = self.connection.execute(
            "SELECT phase.* FROM phase JOIN run ON run.id = phase.run JOIN night ON night.id = run.night "
            "WHERE experiment = ? AND phase = 'whole' AND requests > 0",
            (experiment,),
        )
        for row in rows:
            yield row["run"], row["errors"] / row["requests"]

    def load(self, run: RunRow) -> MeasuredRun:
        """Return a readable run as comparisons take it: with its figures, without its records."""
        row = self.connection.execute("SELECT * FROM run WHERE id = ?", (run.id,)).fetchone()
        whole: dict[str, Any] = json.loads(row["whole"])
        lag_ms = {WHOLE: {"p99.9": whole["lag_p999_ms"]}}
        phases = {}
        for phase in self.connection.execute("SELECT * FROM phase WHERE run = ?", (run.id,)).fetchall():
            times: dict[str, float | None] = dict.fromkeys(whole["times"])
            censored = _parse_censored(whole).get(phase["phase"], {})
            times |= {name: None for name in censored if not name.startswith(MEASURE)}
            steps = {
                name.removeprefix(MEASURE): StepFigures(None, "ms", measure=False, at_least=at_least)
                for name, at_least in censored.items()
                if name.startswith(MEASURE)
            }
            bounds = {name: ms for name, ms in censored.items() if not name.startswith(MEASURE)}
            prompt_times, prompt_steps = dict(times), dict(steps)
            is_late = False
            for figure in self.connection.execute(
                "SELECT * FROM figure WHERE run = ? AND phase = ?", (run.id, phase["phase"])
            ):
                is_late |= figure["prompt"] is not None
                prompt = figure["value"] if figure["prompt"] is None else figure["prompt"]
                if figure["measure"]:
                    name, is_measure = figure["metric"].removeprefix(MEASURE), figure["measure"] == 2
                    steps[name] = StepFigures(figure["value"], figure["unit"], is_measure)
                    prompt_steps[name] = StepFigures(prompt, figure["unit"], is_measure)
                else:
                    times[figure["metric"]], prompt_times[figure["metric"]] = figure["value"], prompt
            found = RunPhase(
                phase["requests"],
                phase["errors"],
                TimeFigures(times, bounds),
                lag_ms.get(phase["phase"], {}),
                steps,
            )
            if is_late:
                early = replace(found, response_ms=TimeFigures(prompt_times, bounds), steps=prompt_steps)
                found = replace(found, prompt=early)
            phases[phase["phase"]] = found
        events = [
            Event(t_ns, name, phase, further) for t_ns, name, phase, further in json.loads(row["events"])
        ]
        facts = RunFacts.model_validate_json(row["facts"])
        return MeasuredRun(
            kept_directory(run.path, facts, phases[WHOLE].requests, events),
            phases,
            service_p50_ms=whole["service_p50_ms"],
            damaged_measures=frozenset(whole["damaged_measures"]),
            **_observed(row["observed"]),
        )

    def set_baseline(self, nights: Sequence[int], experiment: str) -> None:
        """Make these nights the baseline of an experiment."""
        with self.transaction():
            self.connection.execute("UPDATE night SET baseline = 0 WHERE experiment = ?", (experiment,))
            for night in nights:
                self.connection.execute("UPDATE night SET baseline = 1 WHERE id = ?", (night,))

    def changes(self, experiment: str) -> list[ChangeRow]:
        """Return the changes that were reported, in the order of their reports."""
        rows = self.connection.execute("SELECT * FROM change WHERE experiment = ? ORDER BY id", (experiment,))
        return [
            ChangeRow(**{name: row[name] for name in _CHANGE}, accepted=row["accepted_at"] is not None)
            for row in rows
        ]

    def note_changes(self, experiment: str, changes: Sequence[ChangeRow]) -> None:
        """Note that `changes` are reported or have recovered; known ones only if they have recovered."""
        with self.transaction():
            self.connection.executemany(
                f"INSERT INTO change (experiment, {', '.join(_CHANGE)}) "  # noqa: S608 our own names
                f"VALUES (?{', ?' * len(_CHANGE)}) "
                "ON CONFLICT (kind, experiment, scenario, backend, phase, metric, night) DO UPDATE SET "
                "recovered = excluded.recovered, recovery_found = excluded.recovery_found",
                [(experiment, *(getattr(change, name) for name in _CHANGE)) for change in changes],
            )

    def accept_changes(self, experiment: str, at: str) -> None:
        """Accept every change that was reported and has not recovered: it is the new level from `at` on."""
        with self.transaction():
            self.connection.execute(
                "UPDATE change SET accepted_at = ? WHERE experiment = ? AND accepted_at IS NULL "
                "AND recovered IS NULL",
                (at, experiment),
            )

    def note_findings(self, night: int, findings: Sequence[StoredFinding]) -> None:
        """Note what the gatekeeper found on a night."""
        with self.transaction():
            self.connection.execute(
                "UPDATE night SET findings = ? WHERE id = ?", (_findings_text(findings), night)
            )

    def look_again(self, nights: Sequence[int]) -> None:
        """Note that the gatekeeper is to look at these nights again."""
        with self.transaction():
            self.connection.executemany(
                "UPDATE night SET findings = NULL WHERE id = ?", [(night,) for night in nights]
            )

    def decisions(self, experiment: str) -> list[Decision]:
        """Return what was decided, the oldest first."""
        rows = self.connection.execute(
            "SELECT kind, name, night, made_at, made_by, note FROM decision WHERE experiment = ? ORDER BY id",
            (experiment,),
        )
        return [Decision(*row) for row in rows]

    def note_decision(self, experiment: str, decision: Decision) -> None:
        """Note what somebody decided."""
        with self.transaction():
            self.connection.execute(
                "INSERT INTO decision (experiment, kind, name, night, made_at, made_by, note) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    utf8(experiment),
                    decision.kind,
                    utf8(decision.name),
                    decision.night,
                    decision.at,
                    utf8(decision.by),
                    utf8(decision.note),
                ),
            )

    def mark_pruned(self, run: int) -> None:
        """Note that the raw data of a run is gone."""
        with self.transaction():
            self.connection.execute("UPDATE run SET pruned_at = ? WHERE id = ?", (now(), run))


@contextmanager
def open_history(path: Path) -> Iterator[HistoryStore]:
    """Open the history `path`, made where there is none. Raises HistoryError, also of errors in the block."""
    with open_database(path) as connection:
        yield HistoryStore(connection)


def announce(history: HistoryStore, key: str, message: Message, names: Sequence[str]) -> None:
    """Keep a message to be sent, once a `key`, by the channels `names`."""
    with history.transaction():
        cursor = history.connection.execute(
            "INSERT OR IGNORE INTO message (key, made_at, verdict, subject, markdown) VALUES (?, ?, ?, ?, ?)",
            (key, now(), message.verdict, message.subject, message.markdown),
        )
        if cursor.rowcount:
            for name in names:
                history.connection.execute(
                    "INSERT INTO delivery (message, channel) VALUES (?, ?)", (cursor.lastrowid, name)
                )


def deliver(history: HistoryStore, by: Mapping[str, Channel]) -> list[str]:
    """Send what is to be sent, and note what arrived. Return what did not, a sentence each."""
    problems = []
    for name, send in by.items():
        pending = history.connection.execute(
            "SELECT message.* FROM delivery JOIN message "  # noqa: S608 our own text
            f"ON message.id = delivery.message WHERE channel = ? AND {_PENDING} AND attempts < ? "
            "ORDER BY message.id",
            (name, _abandoned_mark(), MOST_ATTEMPTS),
        ).fetchall()
        for row in pending:
            if not _claim(history, row["id"], name):
                continue
            try:
                send(Message(row["verdict"], row["subject"], row["markdown"]))
            except NotDeliveredError as error:
                _settle(history, row["id"], name, None)
                problems.append(f"the message did not go out, and will be sent again next time: {error}")
            else:
                _settle(history, row["id"], name, now())
    return problems


def now() -> str:
    """Return this instant, as the history writes it."""
    return instant(datetime.now(UTC))


def utf8(text: str) -> str:
    """Return `text` without what UTF-8 cannot hold (halves of pairs, from names that are not text)."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def kept_directory(path: str, facts: RunFacts, requests: int, events: Sequence[Event] = ()) -> RunDirectory:
    """Return what the history knows of a run directory, which may be gone."""
    records = RequestFile(Path(path) / REQUESTS_FILE, requests)
    return RunDirectory(Path(path), facts, records, [], [], list(events), summary=None, killed=False)


def _columns(run: RunDigest) -> list[object]:
    facts, measured = run.facts, run.run
    whole, events = "", []
    if measured is not None:
        of_run, busy = measured.phases[WHOLE], measured.saturation
        whole = json.dumps(
            {
                "times": list(of_run.response_ms.ms),
                "service_p50_ms": measured.service_p50_ms,
                "lag_p999_ms": of_run.lag_ms.get("p99.9"),
                "damaged_measures": sorted(measured.damaged_measures),
                "censored": {name: _bounds(phase) for name, phase in measured.phases.items()},
            }
        )
        events = [
            [event.t_ns, event.name, event.phase, event.further]
            for event in measured.directory.events
            if busy and event.name == busy.name and event.phase
        ]
    return [
        utf8(facts.scenario),
        utf8(run.backend),
        None if facts.repeat is None else utf8(str(facts.repeat)),
        instant(facts.started_at) if facts.started_at else "",
        run.status,
        int(facts.generator_limited),
        json.dumps(list(run.unfit)),
        utf8(facts.program.name),
        None if facts.program.version is None else utf8(facts.program.version),
        facts.host.model_dump_json(),
        facts.model_copy(update={"command": []}).model_dump_json(),
        json.dumps(events),
        whole,
        utf8(run.path),
        utf8(run.root),
        run.stamp,
        run.size_bytes,
        _observed_text(measured) if measured and measured.answers else None,
    ]


def _bounds(phase: RunPhase) -> dict[str, float | None]:
    """Return the lower bounds of the figures of a phase that are censored, by metric."""
    steps = {utf8(MEASURE + name): step.at_least for name, step in phase.steps.items() if step.median is None}
    return phase.response_ms.censored | steps


def _parse_censored(whole: dict[str, Any]) -> dict[str, dict[str, float | None]]:
    """Return the same of all phases, from the column `whole`; none of what older versions wrote."""
    found: dict[str, dict[str, float | None]] = whole.get("censored", {})
    return found


def _censored_names(whole: str) -> frozenset[tuple[str, str]]:
    phases = _parse_censored(json.loads(whole)) if whole else {}
    return frozenset((phase, metric) for phase, bounds in phases.items() for metric in bounds)


def _observed_text(run: MeasuredRun) -> str:
    """Return what the records of a run show beside figures, as JSON."""
    routes = {
        name: {each.name: getattr(answers, each.name) for each in fields(answers)}
        for name, answers in run.answers.items()
    }
    observed = {"routes": routes, "silence": run.silence, "records_sha256": run.records_sha256}
    return json.dumps(observed, default=lambda value: value.tolist())  # of NumPy


def _frequent_routes(observed: str | None) -> frozenset[str]:
    """Return the kinds of which the column `observed` counts enough requests."""
    routes = json.loads(observed)["routes"] if observed else {}
    return frozenset(name for name, each in routes.items() if sum(each["kinds"]) >= _LEAST_REQUESTS)


def _observed(text: str | None) -> dict[str, Any]:
    """Return what `_observed_text` was made of, by field of the run; nothing of None."""
    if text is None:
        return {}
    known: dict[str, Any] = json.loads(text)
    answers = {
        name: RouteAnswers(**(each | {"kinds": np.array(each["kinds"], dtype=np.int64)}))
        for name, each in known.pop("routes").items()
    }
    return {"answers": answers} | known


def _findings_text(findings: Sequence[StoredFinding]) -> str:
    """Return what the gatekeeper found on a night as JSON."""
    return json.dumps([asdict(each) for each in findings])


def _night_findings(text: str | None) -> tuple[StoredFinding, ...]:
    """Return what `_findings_text` was made of; nothing of a night that nobody looked at yet."""
    return tuple(
        StoredFinding(**(each | {"level": Severity(each["level"]), "runs": tuple(each["runs"])}))
        for each in json.loads(text or "[]")
    )


def _claim(history: HistoryStore, message: int, channel: str) -> bool:
    """Take a message to send it: of two processes, one gets it. An attempt counts before it is made."""
    with history.transaction():
        cursor = history.connection.execute(
            "UPDATE delivery SET attempts = attempts + 1, delivered_at = 'since ' || ? "  # noqa: S608 our own
            f"WHERE message = ? AND channel = ? AND {_PENDING}",
            (now(), message, channel, _abandoned_mark()),
        )
        return cursor.rowcount == 1


def _abandoned_mark() -> str:
    """Return the mark of the youngest attempt that must have died."""
    return f"since {instant(datetime.now(UTC) - timedelta(seconds=DEAD_AFTER_S))}"


def _settle(history: HistoryStore, message: int, channel: str, at: str | None) -> None:
    with history.transaction():
        history.connection.execute(
            "UPDATE delivery SET delivered_at = ? WHERE message = ? AND channel = ?", (at, message, channel)
        )
