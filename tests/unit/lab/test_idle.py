"""Keys of lab.yml that have no effect where they stand are refused, each with what would give it one."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from plimsoll.cli import main
from plimsoll.common.errors import SettingsError
from plimsoll.common.validation import Location
from plimsoll.lab.experiment.labfile import Lab
from plimsoll.lab.experiment.problems import IDLE_KEYS, CheckedLab, idle_keys, read_checked
from plimsoll.lab.experiment.scenarios import ScenarioTraits, idle_options

Said = dict[str, Any]

STATIC: Said = {"driver": "static", "target": "http://a"}
COMPOSE: Said = {"driver": "compose"}
QEMU: Said = {"driver": "qemu", "image": "/a.qcow2"}
LIBVIRT: Said = {"driver": "libvirt", "base": "web"}
PROXMOX: Said = {"driver": "proxmox", "api": "pve1.lan", "node": "pve", "template": 9000}
BRIDGE: Said = {"bridge": "br0", "target": "http://a"}
DISK: Said = {"kind": "folder", "path": "/lab"}
REPOSITORY: Said = {"to": "repository", "repository": "a@pbs!b@c:d", "password_file": "/secret"}
STORAGE: Said = {"to": "storage", "storage": "pbs"}
NULL: Said = {"to": "null"}
SEND: Said = {"kind": "zfs-send"}
MARIADB: Said = {"defaults_file": "/etc/mysql/debian.cnf"}
FACTOR: Said = {"name": "recordsize", "key": "tuning.datasets.@disk.recordsize", "values": ["16K", "128K"]}
READERS, AUTHORS = ScenarioTraits(changes=False, timed=True), ScenarioTraits(changes=True, timed=True)


def _observe(*names: str, **options: Any) -> Said:
    return {"observe": {"observe": list(names), **options}}


def _backend(clone: Said, **more: Any) -> Said:
    return {"backends": [{"name": "one", "clone": clone, **more}]}


def _phased(**more: Any) -> Said:
    return {"scenarios": [{"scenario": "replay", "options": {"log": "a"}, **more}], "phases": {"before_s": 1}}


def _backup(key: str, sink: Said) -> Said:
    return {"kind": "backup", key: {"mode": "suspend", "compress": "zstd"}[key], "sink": sink}


def _of_all(key: str, sink: Said) -> Said:
    return {"saturator": _backup(key, sink)}


def _of_one(key: str, sink: Said) -> Said:
    return _backend(STATIC, saturator=_backup(key, sink))


# The key, what makes it idle, and what gives it an effect.
ROWS: list[tuple[str, Said, Said]] = [
    ("observe.mariadb", _observe("cpu", mariadb=MARIADB), _observe("mariadb", mariadb=MARIADB)),
    (
        "observe.php",
        _observe("cpu", php={"fastcgi": "/php.sock"}),
        _observe("php", php={"fastcgi": "/php.sock"}),
    ),
    ("observe.fsync", _observe("cpu", fsync={"folder": "/a"}), _observe("fsync", fsync={"folder": "/a"})),
    ("observe.pools", _observe("cpu", pools=["tank"]), _observe("vdevs", pools=["tank"])),
    (
        "observe.disks",
        _observe("cpu", disks=["sda"]) | _backend(STATIC, disk=DISK),
        _observe("cpu", disks=["sda"]),
    ),
    (
        "observe.php.fastcgi",
        _observe("php", php={"fastcgi": "/php.sock", "status": "http://a/status?json"}),
        _observe("php", php={"fastcgi": "/php.sock", "status": "http://a/status?json", "opcache": "/o.php"}),
    ),
    ("site", {"site": {"size": "large"}}, {"site": {"size": "large"}} | _backend(COMPOSE, disk=DISK)),
    ("saturator", {"saturator": SEND} | _backend(STATIC, saturator=SEND), {"saturator": SEND}),
    ("phases", _phased(phases={"after_s": 1}), _phased()),
    ("goal_ms", {"goal_ms": 5}, {"goal_ms": 5, "factors": [FACTOR]}),
    ("limits.retry_s", {"limits": {"retry_s": 5, "failures": 1}}, {"limits": {"retry_s": 5}}),
    (
        "backends.*.clone.restore",
        _backend(STATIC | {"restore": [["true"]]}),
        _backend(STATIC | {"restore": [["true"]]}) | {"scenarios": [{"scenario": "save-article"}]},
    ),
    (
        "backends.*.clone.address",
        _backend(QEMU | BRIDGE | {"address": "10.0.0.7"}, disk=DISK),
        _backend(QEMU | {"address": "10.0.0.7"}, disk=DISK),
    ),
    (
        "backends.*.clone.source",
        _backend(LIBVIRT | {"source": "arp", "target": "http://a"}, disk=DISK),
        _backend(LIBVIRT | {"source": "arp"}, disk=DISK),
    ),
    (
        "backends.*.clone.copy_timeout_s",
        _backend(QEMU | {"full": False, "copy_timeout_s": 9}, disk=DISK),
        _backend(QEMU | {"copy_timeout_s": 9}, disk=DISK),
    ),
    (
        "backends.*.clone.bwlimit",
        _backend(PROXMOX | {"full": False, "bwlimit": 9}),
        _backend(PROXMOX | {"storage": "fast", "bwlimit": 9}),
    ),
    ("saturator.mode", _of_all("mode", REPOSITORY), _of_all("mode", STORAGE)),
    ("backends.*.saturator.mode", _of_one("mode", REPOSITORY), _of_one("mode", STORAGE)),
    ("saturator.compress", _of_all("compress", STORAGE), _of_all("compress", NULL)),
    ("backends.*.saturator.compress", _of_one("compress", STORAGE), _of_one("compress", NULL)),
]


def _said(changes: Said) -> Said:
    scenarios = [{"scenario": "replay", "options": {"log": "a"}}]
    return copy.deepcopy({"name": "lab", **_backend(STATIC), "scenarios": scenarios} | changes)


def _idle(changes: Said) -> list[str]:
    lab = Lab.model_validate(_said(changes))
    kinds = {each.called: AUTHORS if each.scenario == "save-article" else READERS for each in lab.scenarios}
    found = [at for at, _ in idle_keys(CheckedLab(lab, kinds))]
    return [".".join("*" if isinstance(part, int) else str(part) for part in at) for at in found]


@pytest.mark.parametrize(("key", "idle", "effective"), ROWS, ids=[row[0] for row in ROWS])
def test_a_key_without_effect_is_named(key: str, idle: Said, effective: Said) -> None:
    assert _idle(idle) == [key]
    assert _idle(effective) == []


def test_each_key_of_the_list_has_a_row() -> None:
    assert {key for key, *_ in IDLE_KEYS} == {key for key, *_ in ROWS}


def test_what_is_not_given_or_given_elsewhere_is_not_idle() -> None:
    assert _idle({}) == []
    assert _idle({"saturator": None} | _backend(STATIC, saturator=SEND)) == []
    assert _idle({"hosts": [{"name": "web-1"}]}) == [], "lists of hosts are shared"
    varied = {"factors": [{"name": "compress", "key": "saturator.compress", "values": ["zstd", "none"]}]}
    assert _idle(varied | _of_all("compress", STORAGE)) == [], "a factor may change what it depends on"


def test_notices_that_nobody_gets_are_a_caution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLIMSOLL_WEBHOOK", raising=False)
    path = tmp_path / "lab.yml"
    path.write_text(yaml.safe_dump(_said({"notify": {"occasions": ["end"]}})))
    done = CliRunner().invoke(main, ["check", "--no-probe", str(path)])
    assert done.exit_code == 0
    assert "Caution: notify: nobody is notified: give command or webhook_file" in done.output


VISITORS: Said = {"scenario": "visitors", "options": {"model": "ramping-vus", "rate": 9, "visitors": 5}}
MODELS: Said = {
    "name": "model",
    "key": "scenarios.visitors.options.model",
    "values": ["ramping-vus", "constant-arrival-rate"],
}


def test_an_option_of_a_scenario_is_idle_if_it_is_so_in_each_variant() -> None:
    def idle(changes: Said) -> list[Location]:
        return [at for at, _ in idle_options(Lab.model_validate(_said(changes)))]

    alone = {"scenarios": [VISITORS]}
    together = {"name": "rush-hour", "together": [{"scenario": "save-article"}, VISITORS]}
    assert idle({}) == [], "a replay"
    assert idle(alone) == [("scenarios", 0, "options", "rate")]
    assert idle({"scenarios": [together]}) == [("scenarios", 0, "together", 1, "options", "rate")]
    assert idle(alone | {"factors": [{"name": "swappiness", "values": [1, 60]}]}) == idle(alone)
    assert idle(alone | {"factors": [MODELS]}) == [], "rate has an effect in one, visitors in the other"


def test_a_file_with_such_a_key_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "lab.yml"
    path.write_text(yaml.safe_dump(_said({"goal_ms": 5} | _observe("cpu", mariadb=MARIADB)), sort_keys=False))
    lines = path.read_text().splitlines()
    with pytest.raises(SettingsError) as refused:
        read_checked(path)
    goal, mariadb = str(refused.value).splitlines()
    assert goal.startswith(f"{path}:{lines.index('goal_ms: 5') + 1}: goal_ms: has no effect: ")
    assert mariadb == (
        f"{path}:{lines.index('  mariadb:') + 1}: observe.mariadb: has no effect: the observer mariadb does "
        "not run: add it to observe.observe, or leave it out (see docs/observers.md)"
    )
