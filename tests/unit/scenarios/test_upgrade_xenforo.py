"""What the upgrade's command prints, and how SSH is told to log in."""

import itertools

import asyncssh
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.common.ssh import Access, connect_options, connect_trouble
from plimsoll.scenarios.settings import STAND_IN
from plimsoll.scenarios.upgrade_xenforo import LastLines, LineSplitter, PhaseFinder, judge_output
from plimsoll.scenarios.xenforo.installer import CommandOutput, Texts, read_pages

STAND_IN_PAGES = read_pages(STAND_IN)
COMMAND = STAND_IN_PAGES.command or CommandOutput(complete="never")


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=5))
def test_lines_do_not_depend_on_how_the_bytes_come(data: bytes, cuts: list[int]) -> None:
    at = sorted({0, *(c for c in cuts if c < len(data)), len(data)})
    lines, whole = LineSplitter(), LineSplitter()
    pieces = [line for a, b in itertools.pairwise(at) for line in lines.feed(data[a:b])] + [*lines.end()]
    assert pieces == [*whole.feed(data), *whole.end()]


def test_a_progress_bar_is_many_lines_and_an_endless_line_is_cut() -> None:
    lines = LineSplitter()
    assert [*lines.feed(b"1 %\r2 %\r\n\n3")] == ["1 %", "2 %"]
    assert [*lines.end()] == ["3"]
    assert [len(line) for line in lines.feed(b"x" * 200_000)] == [65536] * 3


def test_phases_last_from_line_to_line() -> None:
    phases = PhaseFinder(COMMAND.phase, 0)
    pieces = [
        phases.line("Upgrading from 1.9 to 2.0.", 10),
        phases.line("[1/17] Altering posts ...", 20),
        phases.line("nothing new", 30),
        phases.line("[2/17] Rebuilding likes ... (0 of 9)", 40),
        phases.end(70),
    ]
    assert [(p.name, p.start_ns, p.end_ns) for p in pieces if p] == [
        ("begin", 0, 20),
        ("Altering posts", 20, 40),
        ("Rebuilding likes", 40, 70),
    ]
    assert PhaseFinder(None, 5).line("[1/17] Altering posts ...", 6) is None


CASES = [
    ("it is done", 0, "", "The upgrade is complete. The forum runs 2.0.", None),
    ("it says nothing", 0, "", "Bye.", "upgrade_failed"),
    ("it fails", 1, "", "It failed: SQLSTATE[HY000]", "upgrade_failed"),
    ("it claims to be done, but fails", 1, "", "The upgrade is complete.", "upgrade_failed"),
    ("there is no such command", 127, "", "sh: 1: php: not found", "upgrade_failed"),
    ("it is locked", 1, "", "The upgrade is locked: somebody else", "upgrade_locked"),
    ("it was done before", 1, "", "the forum is already up to date", "wrong_version"),
    ("it was killed", None, "KILL", "[3/17] Posts", "upgrade_failed"),
    ("the connection ended", None, "", "[3/17] Posts", "closed_early"),
    ("PHP died", 255, "", "PHP Fatal error:  Allowed memory size exhausted", "php_fatal"),
    ("the disk is full", 1, "", "It failed: The table 'post' is full", "out_of_disk"),
]


@pytest.mark.parametrize(("why", "status", "signal", "said", "kind"), CASES, ids=[case[0] for case in CASES])
def test_how_it_ended(why: str, status: int | None, signal: str, said: str, kind: str | None) -> None:
    tail = LastLines()
    tail.line("Upgrading from 1.9 to 2.0.")
    tail.line(said)
    found = judge_output(COMMAND, STAND_IN_PAGES.texts, status, signal, tail)
    assert (found.kind if found else None) == kind, why
    assert found is None or said in found.detail


def test_texts_that_are_not_set_are_never_found() -> None:
    found = judge_output(CommandOutput(complete="done now"), Texts(complete="done now"), 1, "", LastLines())
    assert found is not None
    assert found.kind == "upgrade_failed"


@pytest.mark.parametrize(
    ("text", "access"),
    [
        ("web", Access("web")),
        ("deploy@10.0.0.5", Access("10.0.0.5", "deploy")),
        ("deploy@web:2222", Access("web", "deploy", 2222)),
        ("root@[fd00::1]:22", Access("fd00::1", "root", 22)),
    ],
)
def test_accounts(text: str, access: Access) -> None:
    assert Access.parse(text) == access
    assert str(access) == text


@pytest.mark.parametrize(
    "text", ["", "a b", "user:password@web", "web:0", "web:70000", "@web", "web;ls", "a@b@c"]
)
def test_what_is_no_remote(text: str) -> None:
    if text == "web;ls":  # a host of that name there is not, but no shell ever sees it
        assert Access.parse(text).address == text
        return
    with pytest.raises(ValueError, match="user@host"):
        Access.parse(text)


def test_ssh_takes_keys_only_and_no_host_that_is_not_known() -> None:
    options = connect_options(Access.parse("me@web:2222"), 10)
    assert options["preferred_auth"] == ["publickey"]
    assert options["password"] is None
    assert (options["username"], options["host"], options["port"]) == ("me", "web", 2222)
    assert "known_hosts" not in options, "None would accept any host"


@pytest.mark.parametrize(
    ("error", "kind", "remedy"),
    [
        (asyncssh.HostKeyNotVerifiable("no"), "connect_failed", "--ssh-known-hosts"),
        (asyncssh.PermissionDenied("no"), "login_failed", "--ssh-key"),
        (asyncssh.KeyImportError("Passphrase must be specified"), "login_failed", "ssh-agent"),
        (ConnectionRefusedError(), "connect_refused", "nothing listens"),
        (TimeoutError(), "timeout", "no answer"),
        (OSError("No route to host"), "connect_failed", "No route"),
    ],
)
def test_why_there_is_no_connection(error: Exception, kind: str, remedy: str) -> None:
    found = connect_trouble(error, Access("web"), "--ssh-key", "--ssh-known-hosts")
    assert found.kind == kind
    assert remedy in found.sentence
