"""The history's file: an SQLite database, made, checked, and brought up to date.

A transaction is whole or not there (write-ahead log, synchronous FULL), so that kill -9 or a loss of power at
any instant loses nothing that was committed, and doubles nothing.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plimsoll.common.errors import HistoryError

APPLICATION_ID = 0x506C696D  # "Plim": says in the file's head whose database it is
BUSY_TIMEOUT_S = 60.0

# The n-th entry takes a database from version n to n + 1. Entries are never changed, only added.
MIGRATIONS = (
    """
    CREATE TABLE night (
        id INTEGER PRIMARY KEY,
        experiment TEXT NOT NULL,          -- name of the lab.yml; empty where there was none
        name TEXT NOT NULL,                -- of the experiment's folder, or the day
        started_at TEXT NOT NULL,          -- UTC, ISO 8601
        planned INTEGER,                   -- runs that it was to have
        path TEXT NOT NULL,
        baseline INTEGER NOT NULL DEFAULT 0,
        UNIQUE (experiment, name)
    );
    CREATE TABLE run (
        id INTEGER PRIMARY KEY,
        identity TEXT NOT NULL UNIQUE,
        night INTEGER NOT NULL REFERENCES night (id) ON DELETE CASCADE,
        scenario TEXT NOT NULL,
        backend TEXT NOT NULL,             -- empty where it has no name
        repeat TEXT,
        started_at TEXT NOT NULL,
        status TEXT NOT NULL,
        generator_limited INTEGER NOT NULL,
        unfit TEXT NOT NULL,               -- JSON: why nothing can be decided by it; empty list: it is fit
        program TEXT,
        version TEXT,
        host TEXT,                         -- JSON: of the load generator
        facts TEXT NOT NULL,               -- JSON: run.json, without the command
        events TEXT NOT NULL,              -- JSON: what kept the disks busy
        whole TEXT NOT NULL,               -- JSON: figures of all of it; empty where it cannot be read
        path TEXT NOT NULL,
        root TEXT NOT NULL,                -- the folder that it was found in
        stamp TEXT NOT NULL,               -- tells whether the directory changed since
        bytes INTEGER NOT NULL,
        pruned_at TEXT
    );
    CREATE INDEX run_of_night ON run (night);
    CREATE TABLE phase (
        run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
        phase TEXT NOT NULL,
        requests INTEGER NOT NULL,
        errors INTEGER NOT NULL,
        PRIMARY KEY (run, phase)
    ) WITHOUT ROWID;
    CREATE TABLE figure (
        run INTEGER NOT NULL,
        phase TEXT NOT NULL,
        metric TEXT NOT NULL,              -- p99.9, mean, …; `measure NAME`: its median
        value REAL NOT NULL,
        unit TEXT NOT NULL,
        measure INTEGER NOT NULL,          -- 1: a measure, 0: response times
        PRIMARY KEY (run, phase, metric),
        FOREIGN KEY (run, phase) REFERENCES phase (run, phase) ON DELETE CASCADE
    ) WITHOUT ROWID;
    CREATE TABLE change (                  -- what was found and reported, so that it is reported once
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,                -- worse, better, baseline
        experiment TEXT NOT NULL,
        scenario TEXT NOT NULL,
        backend TEXT NOT NULL,
        phase TEXT NOT NULL,
        metric TEXT NOT NULL,
        night INTEGER NOT NULL REFERENCES night (id),       -- the first one that was other
        found INTEGER NOT NULL REFERENCES night (id),       -- the one in which it was found
        before REAL NOT NULL,
        after REAL NOT NULL,
        p REAL NOT NULL,
        accepted_at TEXT,
        UNIQUE (kind, experiment, scenario, backend, phase, metric, night)
    );
    CREATE TABLE message (
        id INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        made_at TEXT NOT NULL,
        verdict TEXT NOT NULL,
        subject TEXT NOT NULL,
        markdown TEXT NOT NULL
    );
    CREATE TABLE delivery (
        message INTEGER NOT NULL REFERENCES message (id) ON DELETE CASCADE,
        channel TEXT NOT NULL,             -- command, webhook
        delivered_at TEXT,
        attempts INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (message, channel)
    ) WITHOUT ROWID;
    """,
    """
    ALTER TABLE change ADD COLUMN recovered INTEGER REFERENCES night (id);       -- the first one as before
    ALTER TABLE change ADD COLUMN recovery_found INTEGER REFERENCES night (id);  -- the one that found that
    ALTER TABLE run ADD COLUMN observed TEXT;      -- JSON: its answers, route by route, and the records' sum
    ALTER TABLE night ADD COLUMN findings TEXT;    -- JSON: of the gatekeeper; NULL until it has looked
    UPDATE night SET findings = '[]';
    CREATE TABLE decision (                -- what somebody decided, and why
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,                -- accept, baseline, drop
        experiment TEXT NOT NULL,
        name TEXT NOT NULL,                -- what was accepted or dropped, or the night of the baseline
        night INTEGER REFERENCES night (id),  -- the last one then; NULL if unknown
        made_at TEXT NOT NULL,
        made_by TEXT NOT NULL,             -- empty if unknown
        note TEXT NOT NULL
    );
    INSERT INTO decision (kind, experiment, name, made_at, made_by, note)
        SELECT 'accept', experiment,
            group_concat(DISTINCT scenario || CASE backend WHEN '' THEN '' ELSE ' on ' || backend END),
            accepted_at, '', ''
        FROM change WHERE accepted_at IS NOT NULL GROUP BY experiment, accepted_at ORDER BY accepted_at;
    """,
    """
    CREATE TABLE log (                     -- an imported access log; each of its days is a night with one run
        id INTEGER PRIMARY KEY,
        identity TEXT NOT NULL UNIQUE,
        experiment TEXT NOT NULL,          -- whose days they are
        backend TEXT NOT NULL,             -- empty where it has no name
        first_us INTEGER NOT NULL,         -- its first request, since 1970-01-01 UTC
        last_us INTEGER NOT NULL,
        requests INTEGER NOT NULL,
        unfit TEXT NOT NULL,               -- JSON: why nothing can be decided by it; empty list: it is fit
        facts TEXT NOT NULL,               -- JSON: run.json, without the command
        path TEXT NOT NULL,
        root TEXT NOT NULL,                -- the folder that it was found in
        stamp TEXT NOT NULL,               -- tells whether the directory changed since
        bytes INTEGER NOT NULL,
        pruned_at TEXT
    );
    CREATE INDEX log_of_experiment ON log (experiment);
    CREATE TABLE hour (                    -- what a log says was served in an hour
        log INTEGER NOT NULL REFERENCES log (id) ON DELETE CASCADE,
        hour INTEGER NOT NULL,             -- since 1970-01-01 UTC
        requests INTEGER NOT NULL,
        failed INTEGER NOT NULL,
        refused INTEGER NOT NULL,          -- answered with a status from 400 on, and no failure
        times BLOB NOT NULL,               -- every time by route, packed (statistics/standardised.py)
        UNIQUE (log, hour)
    );
    CREATE TABLE route (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE
    );
    CREATE TABLE time_zone (               -- by which the days of an experiment begin
        experiment TEXT PRIMARY KEY,
        name TEXT NOT NULL
    ) WITHOUT ROWID;
    """,
    # Keeps older versions of Plimsoll out: they read fields of a run that are no longer written.
    "-- Nothing to do: `whole` no longer has judged, mismatches and body_bytes, which older versions read.",
    # Without the time by which the generator was late; NULL where it was in time, or where that is not known.
    "ALTER TABLE figure ADD COLUMN prompt REAL;",
)
VERSION = len(MIGRATIONS)


@contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the history `path`, created or brought up to date if necessary. Raises HistoryError.

    Errors of SQLite inside the block become HistoryError, too.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    except OSError as error:
        raise HistoryError(
            f"{path}: cannot be opened: {error.strerror}; choose another with --history"
        ) from None
    except sqlite3.Error as error:
        raise HistoryError(f"{path}: cannot be opened: {error}; choose another with --history") from None
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys = ON")
        _migrate(connection, path)
        yield connection
    except sqlite3.Error as error:
        raise _history_error(path, error) from None
    finally:
        connection.close()


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold the one place to write for the block; at its end all is kept, after an error nothing.

    Inside another such block it is part of that one.
    """
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    whose, version = _value(connection, "application_id"), _value(connection, "user_version")
    tables = "SELECT count(*) FROM sqlite_master"
    if whose == 0 and version == 0 and connection.execute(tables).fetchone()[0] == 0:
        connection.execute("PRAGMA journal_mode = WAL")
    elif whose != APPLICATION_ID:
        raise HistoryError(f"{path}: is a database of another program; choose another file with --history")
    if version > VERSION:
        raise HistoryError(
            f"{path}: is a history of version {version}, and this plimsoll knows {VERSION}: use the "
            "version that wrote it, or a newer one"
        )
    connection.execute("PRAGMA synchronous = FULL")
    if whose == APPLICATION_ID:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(found)
    if version == VERSION:
        return
    with transaction(connection):
        version = _value(connection, "user_version")  # another may have been faster
        for script in MIGRATIONS[version:]:
            for statement in _statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _statements(script: str) -> list[str]:
    """Return the statements one by one: executescript would end the transaction."""
    bare = "\n".join(line.split("--")[0] for line in script.splitlines())
    return [statement for statement in bare.split(";") if statement.strip()]


def _value(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def _history_error(path: Path, error: sqlite3.Error) -> HistoryError:
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        return HistoryError(f"{path}: another process has been writing for {BUSY_TIMEOUT_S:g} s: wait for it")
    if isinstance(error, sqlite3.OperationalError):
        return HistoryError(
            f"{path}: {error}; see that there is room on the disk and that you may write there"
        )
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.IntegrityError):
        return HistoryError(
            f"{path}: is not a history, or it is damaged ({error}): put a copy back, or move it away and add "
            "the runs again: plimsoll regress RUNS..."
        )
    return HistoryError(f"{path}: {error}")
