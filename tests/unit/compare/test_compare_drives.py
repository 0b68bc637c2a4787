"""The drives under the runs: what they say decides, or makes doubtful, and stands in what differs."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.analysis.evidence.finding import FindingKind
from plimsoll.analysis.evidence.storage import disks_of, summed_up
from plimsoll.analysis.report.report import make_report
from plimsoll.common.errors import Severity
from plimsoll.rundir.facts import Storage
from tests.support.comparable import judged, runs_of, write_both
from tests.support.rundir import change
from tests.unit.report.test_comparison import text_of

FAILING, ERRORS, THROTTLED = (
    FindingKind.DRIVE_FAILING,
    FindingKind.DRIVE_ERRORS,
    FindingKind.DRIVE_THROTTLED,
)
HOT, WORN, TRIM_OFF = FindingKind.DRIVE_HOT, FindingKind.DRIVE_WORN, FindingKind.TRIM_OFF
KINDS = {FAILING, ERRORS, THROTTLED, HOT, WORN, TRIM_OFF}
WELL = {
    "passed": True,
    "warnings": [],
    "temperature_c": 40,
    "media_errors": 3,
    "over_warning_min": 7,
    "over_critical_min": 1,
    "throttles": 5,
}


def drive(after: dict[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
    said = {"wear_percent": 12, "warning_temperature_c": 70, "before": WELL, "after": WELL | (after or {})}
    return {"facts": {"disks": [{"device": "nvme0n1", "model": "FAST 1TB", "drive": said | keys}]}}


def ssd(facts: dict[str, Any], discards: int = 2147450880, rotational: bool = False) -> dict[str, Any]:
    disk = {"device": "nvme0n1", "rotational": rotational, "discard_max_bytes": discards}
    return {"facts": {"disks": [disk], **facts}}


EXT4 = {"type": "ext4", "discard": False}
POOL_OFF, POOL_ON = ({"pools": [{"pool": "tank", "autotrim": state}]} for state in ("off", "on"))
DISK_OF = {"facts": {"disks": [{"device": "nvme0n1", "drive": None}]}}
FOUND = [
    ("a drive that is well", drive(), []),
    ("a drive that says nothing", DISK_OF, []),
    ("what it counted before does not count", drive(before=WELL, after=WELL), []),
    ("it fails its own test", drive({"passed": False}), [FAILING]),
    ("its capacitor is dead", drive({"passed": False, "warnings": ["backup"]}), [FAILING]),
    ("more media errors", drive({"media_errors": 4}), [ERRORS]),
    ("fewer, as after a change of drives", drive({"media_errors": 0}), []),
    ("it slowed itself down", drive({"throttles": 6}), [THROTTLED]),
    ("over its critical temperature", drive({"over_critical_min": 2}), [THROTTLED]),
    ("at its warning temperature", drive({"temperature_c": 70}), [HOT]),
    ("warm, but below it", drive({"temperature_c": 69}), []),
    ("minutes over it, though cool again", drive({"over_warning_min": 8}), [HOT]),
    ("it warns of nothing but heat", drive({"passed": False, "warnings": ["temperature"]}), [HOT]),
    ("hot, and no limit is known", drive({"temperature_c": 90}, warning_temperature_c=None), []),
    ("worn", drive(wear_percent=100), [WORN]),
    ("nearly worn", drive(wear_percent=99), []),
    ("it did not answer after the run", drive() | {"facts": {"disks": [{"device": "a"}]}}, []),
    ("figures that are words", drive({"throttles": "6", "media_errors": "many"}), []),
    ("emulated: what is below is another disk", drive({"throttles": 6}) | {"emulated": "like rust"}, []),
    ("a pool without autotrim on an SSD", ssd(POOL_OFF), [TRIM_OFF]),
    ("a pool with it", ssd(POOL_ON), []),
    ("a pool on rotating disks", ssd(POOL_OFF, rotational=True), []),
    ("a pool on an SSD that cannot be told", ssd(POOL_OFF, discards=0), []),
    ("ext4, and no timer", ssd({"volume": EXT4, "fstrim_timer": "disabled"}), [TRIM_OFF]),
    ("ext4, and a timer", ssd({"volume": EXT4, "fstrim_timer": "enabled"}), []),
    ("ext4, and nobody knows of a timer", ssd({"volume": EXT4, "fstrim_timer": None}), []),
    ("ext4 with discard", ssd({"volume": EXT4 | {"discard": True}, "fstrim_timer": "disabled"}), []),
    ("facts that are none", {"facts": {"disks": 7, "pools": "tank", "volume": []}}, []),
]


def experiment(folder: Path, of_one: dict[str, Any]) -> Path:
    write_both(folder)
    for run in runs_of(folder):
        change(run, storage=of_one)
    return folder


@pytest.mark.parametrize(("storage", "kinds"), [row[1:] for row in FOUND], ids=[row[0] for row in FOUND])
def test_what_drives_say_is_a_finding(
    storage: dict[str, Any], kinds: list[FindingKind], tmp_path: Path
) -> None:
    found = judged(experiment(tmp_path, storage)).findings
    assert [finding.kind for finding in found if finding.kind in KINDS] == kinds


def test_a_drive_that_was_throttled_on_one_side_leaves_nothing_decided(tmp_path: Path) -> None:
    found = judged(experiment(tmp_path, drive({"throttles": 6})))
    [finding] = [finding for finding in found.findings if finding.kind is THROTTLED]
    assert finding.level is Severity.BAD
    assert finding.text.startswith(
        "replay on nvme: nvme0n1 (FAST 1TB) slowed itself down against heat during a run ("
    )
    assert len(finding.runs) == len(runs_of(tmp_path))
    assert "Cool it" in finding.sentence
    assert {each.verdict.outcome for each in found.judged} == {"INCONCLUSIVE"}


def test_the_report_says_it_and_shows_what_differs(tmp_path: Path) -> None:
    page = text_of(make_report([experiment(tmp_path, drive({"throttles": 6, "temperature_c": 72}))]))
    assert "slowed itself down against heat" in page
    assert "72 °C, of 70 °C at which it warns" in page


def test_what_differs_has_one_figure_of_both_readings() -> None:
    facts: Any = drive({"temperature_c": 66, "throttles": 6})["facts"]
    [disk] = summed_up(facts)["disks"]
    assert disk["drive"] == {
        "wear_percent": 12,
        "warning_temperature_c": 70,
        "temperature_c": 66,
        "media_errors": 3,
        "throttled": True,
        "warnings": [],
    }


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["device", "drive", "before", "after", "throttles"]), inner, max_size=4
        )
    ),
    max_leaves=15,
)


@given(_ANY)
def test_no_facts_crash_it(disks: Any) -> None:
    storage = Storage(facts={"disks": disks})
    disks_of(storage)
    summed_up(storage.facts)
