"""A host that a killed experiment left tuned: the next one finds it, whoever it is, also over SSH."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.programs import PLIMSOLL, REPLAY, ROOT, need, wait_for
from tests.support.servers import Nginx, Sshd

SWAPPINESS = Path("/proc/sys/vm/swappiness")
JOURNALS = Path("/var/lib/plimsoll/tuning")
LAB = """
name: {name}
out: {folder}/{name}
work: {folder}/work-{name}
hosts: [{host}]
backends:
  - name: one
    host: {where}
    clone: {{driver: static, target: "{url}", reset: [[sh, -c, "cat {swappiness} >>{folder}/seen-{name}"]]}}
    tuning: {tuning}
scenarios:
  - scenario: replay
    options: {{log: "{log}", rate: 50}}
phases: {{before_s: 0.3, during_s: {during_s}, after_s: 0.3}}
warmup_s: 0
limits: {{settle_s: 0}}
observe: {{observe: [cpu]}}
repeats: 1
"""


@pytest.fixture(params=["here", pytest.param("over SSH", marks=pytest.mark.slow)])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The entry of `hosts`, and the name of the machine with the disks."""
    if os.geteuid() != 0:
        pytest.skip("needs root: make test-lab")
    before = SWAPPINESS.read_text()
    if request.param == "here":
        yield "", "local"
    else:
        server = Sshd(tmp_path)
        keys = server.access
        yield f"{{name: far, address: 127.0.0.1, {keys}}}", "far"
        server.stop()
    SWAPPINESS.write_text(before)


def _lab(folder: Path, host: tuple[str, str], nginx: Nginx, name: str, tuning: str, during_s: float) -> Path:
    path = folder / f"{name}.yml"
    path.write_text(
        LAB.format(
            name=name,
            folder=folder,
            host=host[0],
            where=host[1],
            url=nginx.url,
            swappiness=SWAPPINESS,
            tuning=tuning,
            log=ROOT / "examples" / "access.log",
            during_s=during_s,
        )
    )
    return path


def _killed_while_tuned(lab_yml: Path, tuned: int) -> None:
    """Start it, and kill it once the host is tuned."""
    process = subprocess.Popen(
        [PLIMSOLL, "run", lab_yml],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    def is_tuned() -> bool:
        assert process.poll() is None
        return int(SWAPPINESS.read_text()) == tuned and bool(list(lab_yml.parent.glob("*/*/attempts/*")))

    wait_for("the host is tuned", is_tuned)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert int(SWAPPINESS.read_text()) == tuned


def _plimsoll(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(PLIMSOLL), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_another_experiment_finds_the_tuning_of_a_killed_one_and_puts_it_back(
    host: tuple[str, str], tmp_path: Path, nginx: Nginx
) -> None:
    need(REPLAY)
    before = int(SWAPPINESS.read_text())
    first, second = f"a-{os.getpid() % 10000}", f"b-{os.getpid() % 10000}"
    killed = _lab(tmp_path, host, nginx, first, f"{{vm: {{swappiness: {before - 7}}}}}", 600)
    _killed_while_tuned(killed, before - 7)
    assert (JOURNALS / f"plimsoll-{first}--one.json").exists()
    other = _lab(tmp_path, host, nginx, second, "{vm: {dirty_expire_centisecs: 2900}}", 0.4)
    done = _plimsoll("run", other, "--json")
    assert done.returncode == 0, done.stderr
    said = f"{host[1]}: is still tuned by experiment {first} in {tmp_path}/{first}/{first}-"
    assert said in done.stderr
    assert f"putting back vm.swappiness = {before}" in done.stderr
    assert int((tmp_path / f"seen-{second}").read_text()) == before == int(SWAPPINESS.read_text())
    (run,) = tmp_path.glob(f"{second}/*/runs/*/run.json")
    (tuned,) = json.loads(run.read_text())["storage"]["tuning"]
    assert (tuned["key"], tuned["set"]) == ("vm.dirty_expire_centisecs", "2900")
    assert not list(JOURNALS.glob(f"plimsoll-*-{os.getpid() % 10000}--*"))


def test_clean_lists_the_tuning_of_its_own_experiment_and_puts_it_back(
    host: tuple[str, str], tmp_path: Path, nginx: Nginx
) -> None:
    need(REPLAY)
    before, name = int(SWAPPINESS.read_text()), f"d-{os.getpid() % 10000}"
    killed = _lab(tmp_path, host, nginx, name, f"{{vm: {{swappiness: {before - 7}}}}}", 600)
    _killed_while_tuned(killed, before - 7)
    journal = JOURNALS / f"plimsoll-{name}--one.json"
    listed = _plimsoll("clean", "--list", killed)
    assert f"a tuning that must be put back: {journal}" in listed.stdout
    assert int(SWAPPINESS.read_text()) == before - 7
    other = _lab(tmp_path, host, nginx, f"e-{os.getpid() % 10000}", "{}", 0.4)
    _plimsoll("clean", other)
    assert int(SWAPPINESS.read_text()) == before - 7, "another experiment's is not its own"
    assert _plimsoll("clean", killed).returncode == 0
    assert int(SWAPPINESS.read_text()) == before
    assert not journal.exists()


def test_what_cannot_be_put_back_is_refused_with_the_commands(
    host: tuple[str, str], tmp_path: Path, nginx: Nginx
) -> None:
    need(REPLAY)
    left = JOURNALS / f"plimsoll-gone-{os.getpid() % 10000}--one.json"
    left.parent.mkdir(parents=True, exist_ok=True)
    value = {"kind": "property", "dataset": "no-such-pool/x", "name": "sync", "value": "standard"}
    left.write_text(json.dumps({"format": 1, "by": "experiment gone", "put_back": [value]}))
    try:
        name = f"c-{os.getpid() % 10000}"
        done = _plimsoll("run", _lab(tmp_path, host, nginx, name, "{}", 0.4))
    finally:
        left.unlink()
    assert done.returncode == 2
    assert "is still tuned by experiment gone" in done.stderr
    assert "its pool is not imported" in done.stderr
    assert f"(zfs set sync=standard no-such-pool/x) and forget it: rm {left}" in done.stderr
    assert not list((tmp_path / name).glob("*/runs/*"))
