"""The rows of imported access logs in the history: every method is one transaction or one query."""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from plimsoll.analysis.regress.days import HourRow, LogRow
from plimsoll.analysis.regress.logdigest import LogDigest
from plimsoll.analysis.regress.night import RunDigest, instant
from plimsoll.analysis.regress.rows import RunRow
from plimsoll.analysis.regress.schema import transaction
from plimsoll.analysis.regress.store import History, now, utf8
from plimsoll.analysis.statistics.served import Served, unpacked
from plimsoll.rundir.runfacts import RunFacts

NO_NIGHT = -1


class LogStore:
    """The imported logs of an open history."""

    def __init__(self, history: History) -> None:
        self._history, self._connection = history, history.connection

    def stamp(self, identity: str) -> str | None:
        """Return the stamp of a log that is known; None where it is to be read."""
        row = self._connection.execute("SELECT stamp FROM log WHERE identity = ?", (identity,)).fetchone()
        return None if row is None else str(row["stamp"])

    def route_ids(self, names: list[str]) -> list[int]:
        """Return the number of each route, of new ones a new one."""
        with transaction(self._connection):
            known = [(utf8(name),) for name in names]
            self._connection.executemany("INSERT INTO route (name) VALUES (?) ON CONFLICT DO NOTHING", known)
            select = "SELECT id FROM route WHERE name = ?"
            return [int(self._connection.execute(select, each).fetchone()["id"]) for each in known]

    def keep(self, log: LogDigest, run_identity: str) -> None:
        """Keep a log, whole or not at all; one that is known already is replaced.

        An older plimsoll kept it as a run, under `run_identity`, which its days take the place of.
        """
        facts = log.facts
        with transaction(self._connection):
            self._connection.execute("DELETE FROM log WHERE identity = ?", (log.identity,))
            self._forget_run(run_identity)
            cursor = self._connection.execute(
                "INSERT INTO log (identity, experiment, backend, first_us, last_us, requests, unfit, facts, "
                "path, root, stamp, bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    log.identity,
                    utf8(log.experiment),
                    utf8(facts.backend or ""),
                    log.first_us,
                    log.last_us,
                    sum(each.requests for each in log.hours),
                    json.dumps(list(log.unfit)),
                    facts.model_copy(update={"command": []}).model_dump_json(),
                    utf8(log.path),
                    utf8(log.root),
                    log.stamp,
                    log.size_bytes,
                ),
            )
            self._connection.executemany(
                "INSERT INTO hour (log, hour, requests, failed, refused, times) VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (cursor.lastrowid, each.hour, each.requests, each.failed, each.refused, each.times)
                    for each in log.hours
                ],
            )

    def _forget_run(self, identity: str) -> None:
        """Forget a run, and its night where that was all that was ever known of it."""
        row = self._connection.execute("SELECT night FROM run WHERE identity = ?", (identity,)).fetchone()
        if row is None:
            return
        self._connection.execute("DELETE FROM run WHERE identity = ?", (identity,))
        self._connection.execute(
            "DELETE FROM night WHERE id = ? AND NOT EXISTS (SELECT 1 FROM run WHERE run.night = night.id) "
            "AND NOT EXISTS (SELECT 1 FROM decision WHERE decision.night = night.id) AND NOT EXISTS "
            "(SELECT 1 FROM change WHERE night.id IN (change.night, found, recovered, recovery_found))",
            (row["night"],),
        )

    def logs(self, experiment: str) -> list[LogRow]:
        """Return the logs of an experiment, in order of time."""
        rows = self._connection.execute(
            "SELECT * FROM log WHERE experiment = ? ORDER BY first_us, identity", (experiment,)
        )
        return [
            LogRow(
                row["id"],
                row["identity"],
                row["backend"],
                row["first_us"],
                row["last_us"],
                tuple(json.loads(row["unfit"])),
                RunFacts.model_validate_json(row["facts"]),
                row["path"],
            )
            for row in rows
        ]

    def hours(self, experiment: str) -> Iterator[HourRow]:
        """Yield the hours of all logs of an experiment, without their times, in order of time."""
        rows = self._connection.execute(
            "SELECT log, hour, hour.requests, failed, refused FROM hour JOIN log ON log.id = hour.log "
            "WHERE experiment = ? ORDER BY hour, log.first_us, identity",
            (experiment,),
        )
        for row in rows:
            yield HourRow(*row)

    def served(self, hours: Iterable[HourRow]) -> Served:
        """Return all requests of `hours`, one at least."""
        parts = []
        for each in hours:
            row = self._connection.execute(
                "SELECT times FROM hour WHERE log = ? AND hour = ?", (each.log, each.hour)
            ).fetchone()
            parts.append(unpacked(each.hour, row["times"]))
        return Served.joined(parts)

    def day_stamps(self, experiment: str) -> dict[str, str]:
        """Return the stamps of the days that are kept, by identity."""
        rows = self._connection.execute(
            "SELECT identity, stamp FROM run JOIN night ON night.id = run.night WHERE experiment = ?",
            (experiment,),
        )
        return {row["identity"]: row["stamp"] for row in rows}

    def keep_day(self, day: RunDigest) -> None:
        """Keep a day as a night with one run, which has no directory. Whether it was judged stays so."""
        key = day.night.key
        with transaction(self._connection):
            known = self._connection.execute(
                "SELECT findings FROM night WHERE experiment = ? AND name = ?",
                (utf8(key.experiment), key.name),
            ).fetchone()
            self._history.keep(day)
            self._connection.execute("UPDATE run SET pruned_at = ? WHERE identity = ?", (now(), day.identity))
            self._connection.execute(
                "UPDATE night SET findings = ? WHERE experiment = ? AND name = ?",
                (known and known["findings"], utf8(key.experiment), key.name),
            )

    def forget_days(self, identities: Iterable[str]) -> None:
        """Forget the figures of days of which the logs say nothing any more."""
        with transaction(self._connection):
            self._connection.executemany(
                "DELETE FROM run WHERE identity = ?", [(each,) for each in identities]
            )

    def time_zone(self, experiment: str) -> str | None:
        """Return the zone whose days are counted; None where there are none yet."""
        row = self._connection.execute(
            "SELECT name FROM time_zone WHERE experiment = ?", (experiment,)
        ).fetchone()
        return None if row is None else str(row["name"])

    def keep_time_zone(self, experiment: str, name: str) -> None:
        """Note by which zone days are counted."""
        with transaction(self._connection):
            self._connection.execute("INSERT OR REPLACE INTO time_zone VALUES (?, ?)", (experiment, name))

    def directories(self) -> list[RunRow]:
        """Return the run directories of all logs: as runs of no night, which began when their log ends."""
        rows = self._connection.execute("SELECT * FROM log ORDER BY first_us, identity").fetchall()
        return [
            RunRow(
                row["id"],
                NO_NIGHT,
                "",
                row["backend"],
                None,
                (),
                row["path"],
                row["root"],
                row["identity"],
                instant(datetime.fromtimestamp(row["last_us"] / 1e6, UTC)),
                row["bytes"],
                readable=row["requests"] > 0,
                pruned=row["pruned_at"] is not None,
            )
            for row in rows
        ]

    def mark_pruned(self, log: int) -> None:
        """Note that the raw data of a log is gone."""
        with transaction(self._connection):
            self._connection.execute("UPDATE log SET pruned_at = ? WHERE id = ?", (now(), log))
