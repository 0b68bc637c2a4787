"""A scrub that ran by itself disqualifies runs; TRIM and a full pool are doubts."""

from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.evidence.finding import Finding, FindingKind
from tests.support.comparable import judged, runs_of, write_both
from tests.support.rundir import change

SCANNED, TRIMMED, FULL = FindingKind.POOL_SCANNED, FindingKind.POOL_TRIMMED, FindingKind.POOL_FULL
TANK = {"clone": {"driver": "compose"}, "facts": {"pools": [{"pool": "tank"}]}}
UNKNOWN: dict[str, Any] = {"clone": {"driver": "compose"}}


def host_csv(columns: dict[str, list[float | None]], from_s: float = 0.0) -> str:
    """One row each half second."""
    lines = [",".join(["t_ns", *columns])]
    for at, values in enumerate(zip(*columns.values(), strict=True)):
        fields = ("" if value is None else f"{value:g}" for value in values)
        lines.append(",".join([str(int((from_s + at / 2) * 1e9)), *fields]))
    return "\n".join(lines) + "\n"


def experiment(folder: Path, text: str, storage: dict[str, Any], saturator: str) -> list[Finding]:
    """What is found where the first run on sata has this host.csv."""
    write_both(folder, saturator=saturator)
    for run in (*runs_of(folder, "sata"), *runs_of(folder, "nvme")):
        change(run, storage=storage)
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
        UNKNOWN,
        "zfs-send",
        [SCANNED],
    ),
    ("TRIM on two disks", one("tank_trim_count", 0, 2, 2), TANK, "zfs-send", [TRIMMED]),
    ("a pool that is over 80 % full", one("tank_full_percent", 79, 81, 80), TANK, "zfs-send", [FULL]),
    ("one that is just as full", one("tank_full_percent", 80, 80), TANK, "zfs-send", []),
    ("a file that is none", "no host.csv\n", TANK, "zfs-send", []),
]


@pytest.mark.parametrize(
    ("text", "storage", "saturator", "kinds"), [row[1:] for row in CASES], ids=[row[0] for row in CASES]
)
def test_what_a_pool_did_beside_a_run(
    tmp_path: Path, text: str, storage: dict[str, Any], saturator: str, kinds: list[FindingKind]
) -> None:
    assert [each.kind for each in experiment(tmp_path, text, storage, saturator)] == kinds


def test_the_sentence_names_run_pool_and_remedy(tmp_path: Path) -> None:
    (found,) = experiment(tmp_path, one("tank_scrub_count", 0, 1), TANK, "zfs-send")
    assert found.text.endswith(" ran at the same time as a scrub of the pool tank.")
    assert found.text.startswith(found.runs[0])
    assert found.remedy == "Wait until it has ended, or pause it (zpool scrub -p), and run it again."


def test_how_full_it_was_is_said(tmp_path: Path) -> None:
    (found,) = experiment(tmp_path, one("tank_full_percent", 91, 90), TANK, "zfs-send")
    assert found.text.endswith(" ran while this was over 80 % full: tank (91 %).")
