"""Messages: to a real command and a real HTTP server, once each, and again where they did not arrive."""

import json
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from plimsoll.analysis.regress import store
from plimsoll.common import notify
from tests.support.comparable import regress, write_night

SECRET = "T0P-SECRET"  # noqa: S105 of the tests


class Server:
    """A web hook: answers what it is told to, and keeps what came."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.answers: list[int] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = outer.answers.pop(0) if outer.answers else 204
                outer.paths.append(self.path)
                if answer < 300:
                    outer.bodies.append(json.loads(body))
                self.send_response(answer)
                if 300 <= answer < 400:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/hook/{SECRET}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def hook() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def unjudged(tmp_path: Path) -> tuple[Path, Path]:
    """A history, and a night that cannot be judged: news."""
    return tmp_path / "history.sqlite", write_night(tmp_path, 0, {"nvme": 50}, planned=4)


def test_a_command_gets_the_markdown_and_the_verdict(tmp_path: Path, unjudged: tuple[Path, Path]) -> None:
    out = tmp_path / "out"
    script = (
        f'cat >"{out}"; echo "$PLIMSOLL_VERDICT: $PLIMSOLL_SUBJECT; ${{PLIMSOLL_WEBHOOK-none}}" >>"{out}"'
    )
    command = tmp_path / "with space"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    result = regress(*unjudged, "--notify-command", f"'{command}' $(touch {tmp_path}/owned)")
    assert result.exit_code == 3
    first, *_, last = out.read_text().splitlines()
    assert first.startswith("# Plimsoll: cannot be judged")
    assert last.startswith("unjudged: nightly cannot be judged: nightly-20260101T020000Z has 1 of its 4 runs")
    assert last.endswith("; none"), "the hook's secret is none of the command's"
    assert not (tmp_path / "owned").exists(), "there is no shell"


def test_a_web_hook_gets_json(
    hook: Server, unjudged: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLIMSOLL_WEBHOOK", hook.url)
    for _ in range(3):
        assert regress(*unjudged).exit_code == 3
    (body,) = hook.bodies
    assert body["verdict"] == "unjudged"
    assert set(body) == {"text", "verdict", "subject", "markdown"}
    assert body["text"].startswith(body["subject"])


def test_a_web_hook_that_fails_is_tried_again_and_then_next_time(
    hook: Server, unjudged: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLIMSOLL_WEBHOOK", hook.url)
    hook.answers = [500, 503, 500]
    failed = regress(*unjudged)
    assert failed.exit_code == 3, "what the hook does is no part of the verdict"
    assert "did not go out, and will be sent again next time: the webhook answered 500" in failed.stderr
    assert SECRET not in failed.output
    hook.answers = [500]
    assert "did not go out" not in regress(unjudged[0]).stderr
    assert len(hook.bodies) == 1
    regress(unjudged[0])
    assert len(hook.bodies) == 1, "and once is enough"


def test_a_web_hook_that_sends_elsewhere_is_not_followed(
    hook: Server, unjudged: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLIMSOLL_WEBHOOK", hook.url)
    hook.answers = [302]
    assert "the webhook answered 302" in regress(*unjudged).stderr
    assert hook.paths == [f"/hook/{SECRET}"]


def test_nobody_listens_and_the_url_stays_secret(
    unjudged: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLIMSOLL_WEBHOOK", f"http://127.0.0.1:9/{SECRET}")
    result = regress(*unjudged)
    assert result.exit_code == 3
    assert "the webhook cannot be reached (ConnectionError)" in result.stderr
    assert SECRET not in result.output
    database = sqlite3.connect(unjudged[0])
    assert SECRET not in "".join(database.iterdump())
    database.close()


def test_the_url_may_stand_in_a_file(hook: Server, tmp_path: Path, unjudged: tuple[Path, Path]) -> None:
    file = tmp_path / "hook"
    file.write_text(f"{hook.url}\n")
    file.chmod(0o644)
    refused = regress(*unjudged, "--webhook-file", file)
    assert refused.exit_code == 2
    assert f"chmod 600 {file}" in refused.stderr
    assert SECRET not in refused.output
    file.chmod(0o600)
    assert regress(*unjudged, "--webhook-file", file).exit_code == 3
    assert len(hook.bodies) == 1


WRONG = [
    ("no URL", f"ftp://{SECRET}"),
    ("no host", f"http:///{SECRET}"),
    ("a space", f"http://example.org/ {SECRET}"),
    ("no such address", f"http://[{SECRET}"),
]


@pytest.mark.parametrize(("what", "url"), WRONG, ids=[row[0] for row in WRONG])
def test_a_url_that_is_none_is_refused(
    what: str, url: str, unjudged: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLIMSOLL_WEBHOOK", url)
    result = regress(*unjudged)
    assert result.exit_code == 2, what
    assert "PLIMSOLL_WEBHOOK: must hold one URL" in result.stderr
    assert SECRET not in result.output


COMMANDS = [
    ("a program that does not exist", "/nowhere/program", "cannot be run: No such file or directory"),
    ("it fails", "sh -c 'echo no mail >&2; exit 4'", "sh ended with 4: no mail"),
    ("it hangs", "sleep 60", "did not end within 0.2 s"),
]


@pytest.mark.parametrize(("what", "command", "says"), COMMANDS, ids=[row[0] for row in COMMANDS])
def test_a_command_that_fails_is_said_and_run_again_next_time(
    what: str,
    command: str,
    says: str,
    unjudged: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(notify, "TIMEOUT_S", 0.2)
    result = regress(*unjudged, "--notify-command", command)
    assert result.exit_code == 3, what
    assert says in result.stderr
    monkeypatch.undo()
    regress(unjudged[0], "--notify-command", f"tee {tmp_path}/out")
    assert (tmp_path / "out").read_text().startswith("# Plimsoll")


def test_a_message_whose_sender_was_killed_is_sent_once_more(
    hook: Server, unjudged: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("PLIMSOLL_WEBHOOK", hook.url)
    with monkeypatch.context() as patch:
        patch.setattr(notify, "post_webhook", killed)
        regress(*unjudged)
    regress(unjudged[0])
    assert hook.bodies == [], "it may still be on its way"
    monkeypatch.setattr(store, "DEAD_AFTER_S", 0.0)
    for _ in range(2):
        regress(unjudged[0])
    assert len(hook.bodies) == 1


@pytest.mark.parametrize("command", ["", "'"])
def test_a_command_that_is_none_is_refused(command: str, unjudged: tuple[Path, Path]) -> None:
    result = regress(*unjudged, "--notify-command", command)
    assert result.exit_code == 2
    assert "--notify-command: " in result.stderr


def test_quiet_nights_send_nothing(hook: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_WEBHOOK", hook.url)
    assert regress(tmp_path / "history.sqlite", write_night(tmp_path, 0, {"nvme": 50})).exit_code == 0
    assert hook.bodies == []
