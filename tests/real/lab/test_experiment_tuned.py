"""A host that a killed experiment left tuned: the next one finds it, whoever it is, also over SSH."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.labs import (
    TUNING_JOURNALS,
    end_when,
    need_lab,
    own_name,
    plimsoll,
    run_lab,
    runs_of,
    write_lab,
)
from tests.support.servers import Nginx, Sshd

SWAPPINESS = Path("/proc/sys/vm/swappiness")
LAB = """
name: $name
out: $folder/out
work: $folder/work
hosts: [$host]
backends:
  - name: one
    host: $where
    clone: {driver: static, target: "$url", reset: [[sh, -c, "cat $swappiness >>$folder/seen"]]}
    tuning: $tuning
scenarios:
  - scenario: replay
    options: {log: "$log", rate: 50}
phases: {before_s: 0.3, during_s: $during_s, after_s: 0.3}
warmup_s: 0
limits: {settle_s: 0}
observe: {observe: [cpu]}
repeats: 1
"""


@pytest.fixture(params=["here", pytest.param("over SSH", marks=pytest.mark.slow)])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The entry of `hosts`, and the name of the machine with the disks."""
    need_lab(as_root=True)
    before = SWAPPINESS.read_text()
    if request.param == "here":
        yield "", "local"
    else:
        server = Sshd(tmp_path)
        yield f"{{name: far, address: 127.0.0.1, {server.access}}}", "far"
        server.stop()
    SWAPPINESS.write_text(before)


Host = tuple[str, str]


def written(folder: Path, host: Host, nginx: Nginx, name: str, tuning: str, during_s: float = 0.4) -> Path:
    """A lab.yml in a folder of its name."""
    (folder / name).mkdir()
    values = {"host": host[0], "where": host[1], "url": nginx.url, "swappiness": SWAPPINESS}
    return write_lab(folder / name, name, LAB, tuning=tuning, during_s=during_s, **values)


def killed_while_tuned(folder: Path, host: Host, nginx: Nginx, name: str) -> tuple[Path, int]:
    """An experiment that was killed once the host was tuned, and the swappiness before it."""
    before = int(SWAPPINESS.read_text())
    lab_yml = written(folder, host, nginx, name, f"{{vm: {{swappiness: {before - 7}}}}}", 600)

    def is_tuned() -> bool:
        has_begun = list((lab_yml.parent / "out").glob("*/attempts/*"))
        return int(SWAPPINESS.read_text()) == before - 7 and bool(has_begun)

    end_when(("run", lab_yml), is_tuned)
    assert int(SWAPPINESS.read_text()) == before - 7
    return lab_yml, before


def test_another_experiment_finds_the_tuning_of_a_killed_one_and_puts_it_back(
    host: Host, tmp_path: Path, nginx: Nginx
) -> None:
    first, second = own_name("a"), own_name("b")
    _, before = killed_while_tuned(tmp_path, host, nginx, first)
    assert (TUNING_JOURNALS / f"plimsoll-{first}--one.json").exists()
    other = written(tmp_path, host, nginx, second, "{vm: {dirty_expire_centisecs: 2900}}")
    outcome, said = run_lab(other)
    assert f"{host[1]}: is still tuned by experiment {first} in {tmp_path}/{first}/out/{first}-" in said
    assert f"putting back vm.swappiness = {before}" in said
    assert int((tmp_path / second / "seen").read_text()) == before == int(SWAPPINESS.read_text())
    (run,) = runs_of(Path(outcome["directory"]))
    (tuned,) = run["storage"]["tuning"]
    assert (tuned["key"], tuned["set"]) == ("vm.dirty_expire_centisecs", "2900")
    assert not list(TUNING_JOURNALS.glob(f"plimsoll-{own_name('*')}--*"))


def test_clean_lists_the_tuning_of_its_own_experiment_and_puts_it_back(
    host: Host, tmp_path: Path, nginx: Nginx
) -> None:
    name = own_name("d")
    lab_yml, before = killed_while_tuned(tmp_path, host, nginx, name)
    journal = TUNING_JOURNALS / f"plimsoll-{name}--one.json"
    listed = plimsoll("clean", "--dry-run", lab_yml)
    assert f"a tuning that must be put back: {journal}" in listed.stdout
    assert int(SWAPPINESS.read_text()) == before - 7
    plimsoll("clean", written(tmp_path, host, nginx, own_name("e"), "{}"))
    assert int(SWAPPINESS.read_text()) == before - 7, "another experiment's is not its own"
    assert plimsoll("clean", lab_yml).returncode == 0
    assert int(SWAPPINESS.read_text()) == before
    assert not journal.exists()


def test_what_cannot_be_put_back_is_refused_with_the_commands(
    host: Host, tmp_path: Path, nginx: Nginx
) -> None:
    left = TUNING_JOURNALS / f"plimsoll-{own_name('gone')}--one.json"
    left.parent.mkdir(parents=True, exist_ok=True)
    value = {"kind": "property", "dataset": "no-such-pool/x", "name": "sync", "value": "standard"}
    left.write_text(json.dumps({"format": 1, "by": "experiment gone", "put_back": [value]}))
    lab_yml = written(tmp_path, host, nginx, own_name("c"), "{}")
    try:
        done = plimsoll("run", lab_yml)
    finally:
        left.unlink()
    assert done.returncode == 2
    assert "is still tuned by experiment gone" in done.stderr
    assert "its pool is not imported" in done.stderr
    assert f"(zfs set sync=standard no-such-pool/x) and forget it: rm {left}" in done.stderr
    assert not list((lab_yml.parent / "out").glob("*/runs/*"))
