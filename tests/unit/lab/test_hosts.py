"""One command on many hosts: which they are, what is run at a time, what is printed, and Ctrl-C."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from plimsoll.common.errors import PlimsollError, SettingsError
from plimsoll.common.ssh import Access
from plimsoll.lab.errors import MachineError
from plimsoll.lab.hosts import hosts
from plimsoll.lab.hosts.everywhere import HostOutcome, outcome_lines, run_everywhere, summary_lines
from plimsoll.lab.hosts.hostsfile import HostSettings, choose_hosts, host_of, read_hosts
from plimsoll.lab.machine import Line, LocalMachine, Process
from tests.support.programs import ROOT

GOOD = """
hosts:
  - &lab {name: web-1, address: 10.0.0.11, port: 2222, user: root, groups: [web], become: true}
  - {<<: *lab, name: web-2, address: 10.0.0.12}
  - {name: db-1, groups: [db, old]}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "hosts.yml"
    path.write_text(text)
    return path


def test_a_hosts_file(tmp_path: Path) -> None:
    first, second, third = read_hosts(written(tmp_path, GOOD))
    assert first.access() == Access("10.0.0.11", "root", 2222)
    assert first.become
    assert (second.user, second.port, second.address) == ("root", 2222, "10.0.0.12")
    assert third.access() == Access("db-1"), "what is not given is what ssh would take"


BAD = [
    ("an empty file", "", [":1: must hold keys"]),
    ("no hosts", "hosts: []", [":1: hosts: must not be empty"]),
    ("no YAML", "hosts: [", [":1: is not valid YAML"]),
    ("no list", "hosts: web-1", [":1: hosts: must be a list"]),
    ("no keys", "hosts: [web-1]", [":1: hosts.0: must hold further keys"]),
    ("an impossible date", "hosts: 2026-02-31", [":1: day is out of range"]),
    (
        "all at once",
        "hosts:\n- name: a b\n  prot: 22\n- address: -oProxyCommand=x\n  port: 0\n- {name: c, user: 'r:x'}\n",
        [
            ":2: hosts.0.name: must be letters",
            ":3: hosts.0.prot: is not a known key: did you mean port? (see docs/hosts.md)",
            ":4: hosts.1.address: must be a host name",
            ":4: hosts.1.name: is missing (see docs/hosts.md)",
            ":5: hosts.1.port: must be at least 1",
            ":6: hosts.2.user: must be an account's name",
        ],
    ),
    (
        "a name twice",
        "hosts:\n- name: a\n- name: b\n- name: a\n",
        [":4: hosts.2.name: a is already the name of hosts.0"],
    ),
    ("a key twice", "hosts:\n- name: a\n  name: b\n", [":3: hosts.0.name: is set twice, first in line 2"]),
    ("a terminal's escape", 'hosts: [{name: "\\e[31m"}]', [":1: hosts.0.name: must be letters"]),
]


@pytest.mark.parametrize(("why", "text", "said"), BAD, ids=[bad[0] for bad in BAD])
def test_a_bad_hosts_file(tmp_path: Path, why: str, text: str, said: list[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        read_hosts(written(tmp_path, text))
    problems = str(caught.value).splitlines()
    assert len(problems) == len(said), why
    for problem, expected in zip(problems, said, strict=True):
        assert problem.startswith(str(tmp_path / "hosts.yml"))
        assert expected in problem


def test_a_hosts_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        read_hosts(tmp_path / "nope.yml")
    (tmp_path / "latin").write_bytes(b"\xe9")
    with pytest.raises(SettingsError, match="is not UTF-8 text"):
        read_hosts(tmp_path / "latin")


CHOICES: list[tuple[str, list[str], list[str], list[str]]] = [
    ("all without a choice", [], [], ["web-1", "web-2", "db-1"]),
    ("by name, in the file's order", ["db-1", "web-1"], [], ["web-1", "db-1"]),
    ("by group", [], ["web"], ["web-1", "web-2"]),
    ("by name or group, each once", ["web-2"], ["web", "old"], ["web-1", "web-2", "db-1"]),
]


@pytest.mark.parametrize(("why", "names", "groups", "there"), CHOICES, ids=[c[0] for c in CHOICES])
def test_hosts_are_chosen(
    tmp_path: Path, why: str, names: list[str], groups: list[str], there: list[str]
) -> None:
    assert [host.name for host in choose_hosts(written(tmp_path, GOOD), names, groups)] == there, why


def test_hosts_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        choose_hosts(written(tmp_path, GOOD), ["web-9", "x"], ["mail"])
    assert str(caught.value).splitlines()[0].startswith("--host web-9: ")
    assert str(caught.value).splitlines()[2].endswith("groups: db, old, web")
    for names, groups, said in (
        ([], [], "--hosts: name the hosts"),
        (["a"], ["g"], "--group: needs a hosts file"),
    ):
        with pytest.raises(SettingsError, match=said):
            choose_hosts(None, names, groups)


def test_hosts_by_address() -> None:
    assert host_of("root@10.0.0.1:2222") == HostSettings(
        name="10.0.0.1", address="10.0.0.1", user="root", port=2222
    )
    assert host_of("[fe80::1]:22").address == "fe80::1"
    assert [host.name for host in choose_hosts(None, ["a:1", "a:2", "a:1"], [])] == ["a", "a:2", "a:1"]
    with pytest.raises(SettingsError) as caught:
        choose_hosts(None, ["a b", "a:70000", "-oX"], [])
    assert [line.split(": ")[0] for line in str(caught.value).splitlines()] == [
        "--host a b",
        "--host a:70000",
        "--host -oX",
    ]


class Unreachable(LocalMachine):
    async def start(self, command: object) -> Process:
        raise MachineError(self.name, "no answer")


def everywhere(
    machines: list[LocalMachine], script: str, parallel: int, timeout_s: float = 60
) -> list[HostOutcome]:
    outcomes: list[HostOutcome] = []
    asyncio.run(run_everywhere(machines, ["bash", "-c", script], parallel, timeout_s, outcomes.append))
    return outcomes


def test_hundreds_of_hosts_run_so_many_at_a_time(tmp_path: Path) -> None:
    script = f"n=$(mktemp -p {tmp_path}); ls {tmp_path} | wc -l; sleep 0.01; rm $n"
    outcomes = everywhere([LocalMachine(f"h{i}") for i in range(200)], script, 5)
    assert len({outcome.host for outcome in outcomes}) == 200
    assert all(outcome.well for outcome in outcomes)
    assert max(int(outcome.lines[0].text) for outcome in outcomes) <= 5


def test_one_bad_host_does_not_keep_the_others() -> None:
    machines = [Unreachable("away"), LocalMachine("there"), LocalMachine("too")]
    outcomes = everywhere(machines, "echo hello; echo no >&2; exit 3", 2)
    away = outcomes[0]
    assert (away.host, away.status, away.trouble) == ("away", None, "no answer")
    assert [(o.status, o.trouble) for o in outcomes[1:]] == [(3, "ended with status 3")] * 2


def test_a_command_that_hangs_has_failed() -> None:
    (outcome,) = everywhere([LocalMachine("slow")], "echo begun; sleep 900", 1, 0.5)
    assert outcome.trouble == "did not end within 0.5 s (--timeout-s)"
    assert [line.text for line in outcome.lines] == ["begun"], "what it said until then is kept"


def test_endless_output_is_not_kept() -> None:
    (outcome,) = everywhere([LocalMachine("loud")], f"yes {'long' * 50} | head -n 10000", 1)
    assert outcome.well
    assert len(outcome.lines) + outcome.left_out == 10_000
    assert outcome_lines(outcome)[-1] == f"loud: {outcome.left_out} further lines are not shown"


def test_what_hosts_say_is_made_printable() -> None:
    lines = (Line("out", "\x1b[2Jred\u202e\ttab", 0), Line("err", "\udcff", 0), Line("out", "", 0))
    shown = outcome_lines(HostOutcome("h\x07", 1, "ended \x1b", 0.25, lines))
    assert shown == [
        "h\\x07: ended \\x1b, 0.2 s",
        "h\\x07 | \\x1b[2Jred\\u202e        tab",
        "h\\x07 ! \\udcff",
        "h\\x07 |",
    ]


def test_the_summary_names_the_first_failure() -> None:
    bad = HostOutcome("b", 4, "ended with status 4", 1, (Line("err", "no \x1b pool", 0), Line("out", "x", 0)))
    shown = summary_lines(
        [HostOutcome("a", 0, "", 1), bad, HostOutcome("c", None, "no answer", 1)], ["d", "e"]
    )
    assert shown == [
        "5 hosts: 1 ok, 2 failed, 2 not done",
        "first failure: b: ended with status 4: no \\x1b pool",
        "failed: b, c",
        "not done: d, e",
    ]


def ran(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Result:
    """The command itself; instead of over SSH it runs here."""
    monkeypatch.setattr(HostSettings, "machine", lambda host: LocalMachine(host.name))
    return CliRunner().invoke(hosts, ["exec", *arguments])


def test_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = str(written(tmp_path, GOOD))
    well = ran(monkeypatch, "--hosts", file, "--group", "db", "--", "echo", "-n", "$HOME")
    assert well.exit_code == 0
    assert "db-1 | $HOME" in well.stdout
    assert well.stdout.endswith("1 host: 1 ok, 0 failed, 0 not done\n")
    failed = ran(monkeypatch, "--hosts", file, "--json", "--", "sh", "-c", "echo no >&2; exit 3")
    assert failed.exit_code == 1
    data = json.loads(failed.stdout)
    assert (data["format"], data["ok"], data["failed"], data["not_done"]) == (1, 0, 3, [])
    assert data["hosts"][0]["output"] == [{"stream": "err", "text": "no"}]
    assert data["hosts"][0]["trouble"] == "ended with status 3"


WRONG = [
    ("no command", ["--host", "a"]),
    ("no host at a time", ["--host", "a", "--parallel", "0", "--", "true"]),
    ("no time", ["--host", "a", "--timeout-s", "0", "--", "true"]),
]


@pytest.mark.parametrize(("why", "arguments"), WRONG, ids=[w[0] for w in WRONG])
def test_wrong_usage(monkeypatch: pytest.MonkeyPatch, why: str, arguments: list[str]) -> None:
    assert ran(monkeypatch, *arguments).exit_code == 2, why


def test_no_hosts_is_an_error_that_the_command_line_turns_into_2(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(ran(monkeypatch, "--", "true").exception, PlimsollError)


@pytest.mark.timeout(300)
def test_interrupted_it_ends_what_runs_and_says_what_was_not_done(tmp_path: Path) -> None:
    program = """
import sys
from plimsoll.lab.hosts import hosts
from plimsoll.lab.hosts.hostsfile import HostSettings
from plimsoll.lab.machine import LocalMachine
HostSettings.machine = lambda host: LocalMachine(host.name)
hosts(sys.argv[1:])
"""
    # Who runs second holds the pipe open for as long as it lives: opening and its end are what we wait for.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    script = f"mkdir '{tmp_path}/first' 2>/dev/null && exit 0; exec 3>'{pipe}'; echo up >&3; exec sleep 900"
    names = [word for name in "abcd" for word in ("--host", name)]
    with (
        subprocess.Popen(
            [sys.executable, "-c", program, "exec", *names, "--parallel", "1", "--", "sh", "-c", script],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as us,
        pipe.open() as second,
    ):
        assert second.readline() == "up\n"
        us.send_signal(signal.SIGINT)
        out, err = us.communicate()
        assert second.read() == "", "what ran was ended"
    assert us.returncode == 1, err
    assert "interrupted" in err
    assert out.splitlines()[-2:] == ["4 hosts: 1 ok, 0 failed, 3 not done", "not done: b, c, d"]
