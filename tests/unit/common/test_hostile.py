"""Python and Go take out the same secrets: both are held to one table."""

import json
from time import thread_time

import pytest

from plimsoll.common.hostile import redact, redact_command
from tests.support.programs import FIXTURES

ROWS: list[dict[str, str]] = json.loads((FIXTURES / "secrets.json").read_text())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["why"])
def test_secrets_are_taken_out_as_in_go(row: dict[str, str]) -> None:
    assert redact_command([row["text"]]) == [row["kept"]]


@pytest.mark.parametrize(
    ("text", "kept", "why"),
    [
        ("a\nCookie: b\nc", "a\nCookie: REDACTED\nc", "a header between other lines"),
        ("wordpress_logged_in_x: a", "wordpress_logged_in_x: a", "no header that is secret by name"),
        ("_xfToken=hunter2", "_xfToken=REDACTED", "a forum's token"),
    ],
)
def test_secrets_are_taken_out_of_texts(text: str, kept: str, why: str) -> None:
    assert redact(text) == kept, why


@pytest.mark.parametrize("begin", ["", "://", "?", "a:bearer"])
@pytest.mark.parametrize("piece", ["a-", "a", "\n", "auth-", "?%", "://", "&a%", "key:", " "])
def test_hostile_text_takes_no_longer_than_other_text(begin: str, piece: str) -> None:
    """A hundred times the text is about a hundred times the work, not ten thousand times."""

    def work(pieces: int, times: int) -> float:
        began = thread_time()
        for _ in range(times):
            redact(begin + piece * pieces)
        return (thread_time() - began) / times

    assert min(work(5_000, 1) for _ in range(3)) < 1_000 * min(work(50, 100) for _ in range(3))
