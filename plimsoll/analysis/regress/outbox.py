"""Messages on their way: an outbox in the history's file, once a channel, again where they did not arrive."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from plimsoll.analysis.regress.nights import instant
from plimsoll.analysis.regress.store import HistoryStore, now
from plimsoll.common.notify import Channel, Message, NotDeliveredError

MOST_ATTEMPTS = 20  # nights: after that nobody waits for it
DEAD_AFTER_S = 600.0  # an attempt that has not ended by then was killed
# Neither sent, nor being sent by a process that lives.
_PENDING = "(delivered_at IS NULL OR (delivered_at LIKE 'since %' AND delivered_at < ?))"


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
