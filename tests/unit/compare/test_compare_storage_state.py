"""Caches and volumes that were not in the same state on both sides: what verdicts and reports say of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.report.report import make_report
from plimsoll.analysis.signoff.page import scenarios_table
from tests.support.comparable import judged, runs_of, write_both
from tests.support.rundir import change
from tests.unit.report.test_comparison import text_of

OTHER_CACHES, OTHER_PRECONDITION = FindingKind.OTHER_CACHES, FindingKind.OTHER_PRECONDITION
NOT_STEADY = FindingKind.NOT_STEADY
OF_STATE = (OTHER_CACHES, OTHER_PRECONDITION, NOT_STEADY)
HOW = ["write everything out", "drop the page cache"]
WORN = {"fill_percent": 80, "block_bytes": 4096, "threads": 4, "rounds": 7, "steady": True}
LESS = WORN | {"fill_percent": 50}


def experiment(folder: Path, sata: dict[str, Any], nvme: dict[str, Any]) -> Path:
    """An experiment whose runs have this in `storage`, by backend."""
    write_both(folder)
    for backend, said in (("sata", sata), ("nvme", nvme)):
        for run in runs_of(folder, backend):
            change(run, storage={"clone": {"driver": "compose"}, **said})
    return folder


def caches(state: str) -> dict[str, Any]:
    return {"cache": {"state": state, "how": HOW}}


def of_state(findings: list[Finding]) -> list[FindingKind]:
    return [finding.kind for finding in findings if finding.kind in OF_STATE]


CACHES = [
    ("cold on both", caches("cold"), caches("cold"), []),
    ("cold as lab.yml says, and by default", caches("cold"), caches("default"), []),
    ("runs of an older version", caches("warm"), {}, []),
    ("cold and warm", caches("cold"), caches("warm"), [OTHER_CACHES]),
    ("by default, and as the run before left them", caches("default"), caches("as-is"), [OTHER_CACHES]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sata", "nvme", "kinds"), [row[1:] for row in CACHES], ids=[row[0] for row in CACHES]
)
def test_unlike_caches_are_a_finding(
    sata: dict[str, Any], nvme: dict[str, Any], kinds: list[FindingKind], tmp_path: Path
) -> None:
    found = judged(experiment(tmp_path, sata, nvme))
    assert of_state(found.findings) == kinds
    assert ("INCONCLUSIVE" in {each.verdict.outcome for each in found.judged}) is bool(kinds)


def test_the_sentence_names_both_states(tmp_path: Path) -> None:
    found = judged(experiment(tmp_path, caches("cold"), caches("warm")))
    (finding,) = [each for each in found.findings if each.kind is OTHER_CACHES]
    assert finding.text == "replay: the runs did not begin with the same caches: sata cold and nvme warm."
    assert len(finding.runs) == 8


WEAR = [
    ("full and steady on both", {"precondition": WORN}, {"precondition": WORN}, []),
    ("neither", {}, {}, []),
    ("full on one side", {"precondition": WORN}, {}, [OTHER_PRECONDITION]),
    ("fuller", {"precondition": WORN}, {"precondition": LESS}, [OTHER_PRECONDITION]),
    ("more rounds are no difference", {"precondition": WORN}, {"precondition": WORN | {"rounds": 9}}, []),
    ("not steady", {"precondition": WORN}, {"precondition": WORN | {"steady": False}}, [NOT_STEADY]),
]  # fmt: skip


@pytest.mark.parametrize(("sata", "nvme", "kinds"), [row[1:] for row in WEAR], ids=[row[0] for row in WEAR])
def test_volumes_that_are_not_alike_or_not_steady_are_a_doubt(
    sata: dict[str, Any], nvme: dict[str, Any], kinds: list[FindingKind], tmp_path: Path
) -> None:
    found = judged(experiment(tmp_path, sata, nvme))
    assert of_state(found.findings) == kinds
    assert not any(finding.disqualifies for finding in found.findings if finding.kind in OF_STATE)
    assert scenarios_table(found).rows


def line(volume: str, number: int, filling: str = "a", **more: Any) -> str:
    said = {"volume": volume, "filling": filling, "round": number, "fill_percent": 80, "block_bytes": 4096}
    said |= {
        "threads": 4,
        "bytes": 3 << 30,
        "seconds": 60.0,
        "mib_per_s": 12.5,
        "iops": 3200.0,
        "p999_ms": 8.25,
    }
    said |= {"range_percent": None, "slope_percent": None, "steady": None}
    return json.dumps(said | more) + "\n"


def test_a_report_shows_the_rounds_of_the_last_filling_and_the_state_of_each_run(tmp_path: Path) -> None:
    both = {"precondition": WORN, **caches("cold")}
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
    page = text_of(make_report([experiment(tmp_path, caches("warm"), caches("as-is"))]))
    assert "the runs did not begin with the same caches: sata warm and nvme as-is." in page


def test_a_report_without_rounds_has_no_table(tmp_path: Path) -> None:
    made = make_report([experiment(tmp_path, {}, {})])
    assert "filled and overwritten" not in text_of(made)
    assert "precondition" not in made.as_json()
