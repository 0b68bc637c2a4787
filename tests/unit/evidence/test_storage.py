"""Drives, pools, caches and volumes under the runs: what they say makes verdicts doubtful, and is shown."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.storage import disks_of, summed_up
from plimsoll.analysis.report.making import make_report
from plimsoll.analysis.signoff.page import scenarios_table
from plimsoll.common.errors import Severity
from plimsoll.rundir.facts import Storage
from tests.support.comparable import judged, runs_of, write_both
from tests.support.pages import text_of
from tests.support.rundir import change

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
    health = {"wear_percent": 12, "warning_temperature_c": 70, "before": WELL, "after": WELL | (after or {})}
    return {"facts": {"disks": [{"device": "nvme0n1", "model": "FAST 1TB", "drive": health | keys}]}}


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


COMPOSE: dict[str, Any] = {"clone": {"driver": "compose"}}
OTHER_CACHES, OTHER_PRECONDITION = FindingKind.OTHER_CACHES, FindingKind.OTHER_PRECONDITION
NOT_STEADY = FindingKind.NOT_STEADY
OF_STATE = (OTHER_CACHES, OTHER_PRECONDITION, NOT_STEADY)
FULL_AND_STEADY = {"fill_percent": 80, "block_bytes": 4096, "threads": 4, "rounds": 7, "steady": True}


def caches(state: str) -> dict[str, Any]:
    return COMPOSE | {"cache": {"state": state, "how": ["write everything out", "drop the page cache"]}}


def filled(**keys: Any) -> dict[str, Any]:
    return COMPOSE | {"precondition": FULL_AND_STEADY | keys}


STATES = [
    ("cold on both", caches("cold"), caches("cold"), []),
    ("cold as lab.yml says, and by default", caches("cold"), caches("default"), []),
    ("runs of an older version", caches("warm"), COMPOSE, []),
    ("cold and warm", caches("cold"), caches("warm"), [OTHER_CACHES]),
    ("by default, and as the run before left them", caches("default"), caches("as-is"), [OTHER_CACHES]),
    ("full and steady on both", filled(), filled(), []),
    ("neither", COMPOSE, COMPOSE, []),
    ("full on one side", filled(), COMPOSE, [OTHER_PRECONDITION]),
    ("fuller", filled(), filled(fill_percent=50), [OTHER_PRECONDITION]),
    ("more rounds are no difference", filled(), filled(rounds=9), []),
    ("not steady", filled(), filled(steady=False), [NOT_STEADY]),
]


@pytest.mark.parametrize(
    ("sata", "nvme", "kinds"), [row[1:] for row in STATES], ids=[row[0] for row in STATES]
)
def test_unlike_caches_decide_nothing_and_unlike_volumes_are_a_doubt(
    sata: dict[str, Any], nvme: dict[str, Any], kinds: list[FindingKind], tmp_path: Path
) -> None:
    found = judged(experiment(tmp_path, nvme, sata))
    of_state = [each for each in found.findings if each.kind in OF_STATE]
    assert [each.kind for each in of_state] == kinds
    assert any(each.disqualifies for each in of_state) is (OTHER_CACHES in kinds)
    assert ("INCONCLUSIVE" in {each.verdict.outcome for each in found.judged}) is (OTHER_CACHES in kinds)
    assert scenarios_table(found).rows


def test_the_sentence_names_both_states(tmp_path: Path) -> None:
    found = judged(experiment(tmp_path, caches("warm"), caches("cold")))
    (finding,) = [each for each in found.findings if each.kind is OTHER_CACHES]
    assert finding.text == "replay: the runs did not begin with the same caches: sata cold and nvme warm."
    assert len(finding.runs) == 8


def line(volume: str, number: int, filling: str = "a", **more: Any) -> str:
    figures = {"volume": volume, "filling": filling, "round": number, "fill_percent": 80, "block_bytes": 4096}
    figures |= {"threads": 4, "bytes": 3 << 30, "seconds": 60.0, "mib_per_s": 12.5, "iops": 3200.0}
    figures |= {"p999_ms": 8.25, "range_percent": None, "slope_percent": None, "steady": None}
    return json.dumps(figures | more) + "\n"


def test_a_report_shows_the_rounds_of_the_last_filling_and_the_state_of_each_run(tmp_path: Path) -> None:
    both = filled() | caches("cold")
    folder = experiment(tmp_path, both, both)
    (folder / "precondition.jsonl").write_text(
        line("nvme", 0, iops=None)
        + line("nvme", 1, iops=111.0)
        + line("nvme", 0, "b", iops=None, mib_per_s=987.0)
        + line("nvme", 1, "b", range_percent=12.34, slope_percent=3.21, steady=True)
        + line("<i>sata", 1, steady=False)
        + '{"volume": "sata", "round": NaN}\n{"vol'
    )
    made = make_report([folder])
    page = text_of(made)
    assert "How the volumes were filled and overwritten" in page
    assert "nvme, filling with 3 GiB" in page and "987" in page
    assert "12.3" in page and "3.2" in page and ">yes<" in page
    assert "&lt;i&gt;sata, round 1" in page and "<i>sata" not in page
    assert "111" not in [cell.strip() for cell in page.replace("<", ">").split(">")], (
        "of a filling that is gone"
    )
    assert "cold: write everything out, drop the page cache" in page
    assert "80 % full, steady after 7 rounds of overwrites" in page
    assert [one["round"] for one in made.as_json()["precondition"]] == [0, 1, 1]  # type: ignore[attr-defined]


def test_a_report_warns_of_unlike_caches(tmp_path: Path) -> None:
    page = text_of(make_report([experiment(tmp_path, caches("as-is"), caches("warm"))]))
    assert "the runs did not begin with the same caches: sata warm and nvme as-is." in page


def test_a_report_without_rounds_has_no_table(tmp_path: Path) -> None:
    made = make_report([experiment(tmp_path, COMPOSE, COMPOSE)])
    assert "filled and overwritten" not in text_of(made)
    assert "precondition" not in made.as_json()


SCANNED, TRIMMED, FULL = FindingKind.POOL_SCANNED, FindingKind.POOL_TRIMMED, FindingKind.POOL_FULL
TANK = COMPOSE | {"facts": {"pools": [{"pool": "tank"}]}}


def host_csv(columns: dict[str, list[float | None]], from_s: float = 0.0) -> str:
    """One row each half second."""
    lines = [",".join(["t_ns", *columns])]
    for at, values in enumerate(zip(*columns.values(), strict=True)):
        fields = ("" if value is None else f"{value:g}" for value in values)
        lines.append(",".join([str(int((from_s + at / 2) * 1e9)), *fields]))
    return "\n".join(lines) + "\n"


def beside(folder: Path, text: str, storage: dict[str, Any], saturator: str) -> list[Finding]:
    """Return what is found where the first run on sata has this host.csv."""
    experiment(folder, storage, storage, saturator=saturator)
    (runs_of(folder, "sata")[0] / "host.csv").write_text(text)
    found = judged(folder)
    of_pool = [each for each in found.findings if each.kind in (SCANNED, TRIMMED, FULL)]
    undecided = "INCONCLUSIVE" in {each.verdict.outcome for each in found.judged}
    assert undecided is any(each.disqualifies for each in of_pool)
    return of_pool


def one(column: str, *values: float | None) -> str:
    return host_csv({f"poolstate.{column}": list(values)})


CASES: list[tuple[str, str, dict[str, Any], str, list[FindingKind]]] = [
    ("a scrub that began on its own", one("tank_scrub_count", 0, 1, 1), TANK, "zfs-send", [SCANNED]),
    ("a resilver", one("tank_resilver_count", 0, 1, 1), TANK, "zfs-send", [SCANNED]),
    ("none", one("tank_scrub_count", 0, 0, 0), TANK, "zfs-send", []),
    ("nobody observed the pool", one("tank_scrub_count", None, None), TANK, "zfs-send", []),
    ("the saturator's own scrub", one("tank_scrub_count", 0, 1, 1), TANK, "scrub", []),
    ("a resilver beside it", one("tank_resilver_count", 0, 1, 1), TANK, "scrub", [SCANNED]),
    ("a scrub beside the saturator's resilver", one("tank_scrub_count", 1), TANK, "resilver", [SCANNED]),
    (
        "a scrub that had ended when the run began",
        host_csv({"poolstate.tank_scrub_count": [1, 1, 0, 0]}, from_s=-1),
        TANK,
        "zfs-send",
        [],
    ),
    (
        "a scrub of another pool than the storage's",
        host_csv({"poolstate.tank_scrub_count": [0], "poolstate.other_scrub_count": [1]}),
        TANK,
        "zfs-send",
        [],
    ),
    (
        "of any pool, where nobody knows which is the storage's",
        host_csv({"poolstate.tank_scrub_count": [0], "poolstate.other_scrub_count": [1]}),
        COMPOSE,
        "zfs-send",
        [SCANNED],
    ),
    ("TRIM on two disks", one("tank_trim_count", 0, 2, 2), TANK, "zfs-send", [TRIMMED]),
    ("a pool that is over 80 % full", one("tank_full_percent", 79, 81, 80), TANK, "zfs-send", [FULL]),
    ("one that is just as full", one("tank_full_percent", 80, 80), TANK, "zfs-send", []),
    ("a file of something else", "no host.csv\n", TANK, "zfs-send", []),
]


@pytest.mark.parametrize(
    ("text", "storage", "saturator", "kinds"), [row[1:] for row in CASES], ids=[row[0] for row in CASES]
)
def test_what_a_pool_did_beside_a_run(
    tmp_path: Path, text: str, storage: dict[str, Any], saturator: str, kinds: list[FindingKind]
) -> None:
    assert [each.kind for each in beside(tmp_path, text, storage, saturator)] == kinds


def test_the_sentence_names_run_pool_and_remedy(tmp_path: Path) -> None:
    (found,) = beside(tmp_path, one("tank_scrub_count", 0, 1), TANK, "zfs-send")
    assert found.text.endswith(" ran at the same time as a scrub of the pool tank.")
    assert found.text.startswith(found.runs[0])
    assert found.remedy == "Wait until it has ended, or pause it (zpool scrub -p), and run it again."


def test_how_full_it_was_is_said(tmp_path: Path) -> None:
    (found,) = beside(tmp_path, one("tank_full_percent", 91, 90), TANK, "zfs-send")
    assert found.text.endswith(" ran while this was over 80 % full: tank (91 %).")


def experiment(folder: Path, nvme: dict[str, Any], sata: dict[str, Any] | None = None, **more: Any) -> Path:
    """Write an experiment whose runs have this in `storage`, by backend."""
    write_both(folder, **more)
    for backend, storage in (("nvme", nvme), ("sata", sata)):
        for run in runs_of(folder, backend) if storage is not None else []:
            change(run, storage=storage)
    return folder
