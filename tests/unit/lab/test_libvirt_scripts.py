"""The scripts of the driver `libvirt`, run against a virsh that says what it is told to."""

import os
import subprocess
from pathlib import Path

import pytest

from plimsoll.lab.clones import libvirt as scripts
from plimsoll.lab.steps.step import Command

URI, NAME = "qemu:///system", "plimsoll-bench--hdd"
VIRSH = """#!/bin/sh
shift 3 # -q -c URI
echo "$*" >>"$STATE/asked"
case $1 in
list) [ ! -e "$STATE/down" ] || exit 1; printf '%s\\n\\n' "$(cat "$STATE/names")" ;;
metadata) cat "$STATE/mark" ;;
domstate) cat "$STATE/state" ;;
shutdown) [ -e "$STATE/deaf" ] || echo "shut off" >"$STATE/state" ;;
destroy) echo "shut off" >"$STATE/state" ;;
undefine) : >"$STATE/names" ;;
domifaddr) cat "$STATE/addresses" ;;
esac
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    program = tmp_path / "bin" / "virsh"
    program.parent.mkdir()
    program.write_text(VIRSH)
    program.chmod(0o755)
    files = {
        "names": NAME,
        "mark": f'<clone name="{NAME}"/>',
        "state": "running",
        "addresses": "",
        "asked": "",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n" if text else "")
    return tmp_path


def run(state: Path, command: Command) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{state}/bin:{os.environ['PATH']}", "STATE": str(state)}
    return subprocess.run(
        command.words, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def asked(state: Path) -> list[str]:
    return [line.split()[0] for line in (state / "asked").read_text().splitlines()]


ADDRESSES = [
    ("a lease", " vnet0      52:54:00:aa:bb:cc    ipv4         192.168.122.5/24\n", "192.168.122.5"),
    (
        "an agent's",
        " lo         00:00:00:00:00:00    ipv4         127.0.0.1/8\n"
        " -          -                    ipv6         ::1/128\n"
        " docker0    02:42:00:00:00:00    ipv4         172.17.0.1/16\n"
        " eth0       52:54:00:aa:bb:cc    ipv4         169.254.3.3/16\n"
        " -          -                    ipv4         10.0.0.7/24\n",
        "10.0.0.7",
    ),
    ("the host's", " vnet0      52:54:00:aa:bb:cc    ipv4         10.0.0.8/0\n", "10.0.0.8"),
    ("none yet", "", None),
]


@pytest.mark.parametrize(("why", "table", "found"), ADDRESSES)
def test_the_address_is_read_out_of_its_table(state: Path, why: str, table: str, found: str | None) -> None:
    (state / "addresses").write_text(table)
    done = run(state, scripts.ask_address(URI, NAME, "lease", 0))
    assert (done.returncode == 0, done.stdout.strip() or None) == (found is not None, found), why
    assert found or "it has no address yet" in done.stderr


def test_a_guest_that_listens_is_shut_down(state: Path) -> None:
    assert run(state, scripts.shut_down(URI, NAME, 30)).returncode == 0
    assert asked(state) == ["domstate", "shutdown", "domstate"]


def test_a_guest_that_does_not_is_switched_off(state: Path) -> None:
    (state / "deaf").touch()
    assert run(state, scripts.shut_down(URI, NAME, 1)).returncode == 0
    assert asked(state)[-1] == "destroy"


def test_a_guest_at_rest_is_let_be(state: Path) -> None:
    (state / "state").write_text("shut off\n")
    assert run(state, scripts.shut_down(URI, NAME, 30)).returncode == 0
    assert asked(state) == ["domstate"]


def test_what_has_our_mark_is_removed_once(state: Path) -> None:
    for _ in range(2):
        assert run(state, scripts.remove_domain(URI, NAME)).returncode == 0
    assert asked(state) == ["list", "metadata", "domstate", "destroy", "undefine", "list"]


@pytest.mark.parametrize("mark", ["", f'<clone name="{NAME}x"/>', f'<clone name="x{NAME}"/>'])
def test_what_has_not_is_left(state: Path, mark: str) -> None:
    (state / "mark").write_text(mark)
    done = run(state, scripts.remove_domain(URI, NAME))
    assert (done.returncode, "it does not have the lab's mark" in done.stderr) == (1, True)
    assert "undefine" not in asked(state)


def test_a_name_that_is_nearly_ours_is_none(state: Path) -> None:
    (state / "names").write_text(f"{NAME}x\nx{NAME}\n{NAME.replace('-', '.')}\n")
    assert run(state, scripts.remove_domain(URI, NAME)).returncode == 0
    assert asked(state) == ["list"]


def test_without_libvirtd_nothing_is_said_to_be_removed(state: Path) -> None:
    (state / "down").touch()
    assert run(state, scripts.remove_domain(URI, NAME)).returncode == 1
