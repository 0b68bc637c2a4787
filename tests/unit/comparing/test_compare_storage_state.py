"""Caches that were not in the same state on both sides: what verdicts and reports say of them."""

from pathlib import Path
from typing import Any

import pytest

from analysis.evidence.finding import Finding, FindingKind
from analysis.report.make import make_report
from tests.support.comparable import change, judged, runs_of, write_both
from tests.unit.report.test_comparison import text_of

OTHER_CACHES = FindingKind.OTHER_CACHES
OF_STATE = (OTHER_CACHES,)
HOW = ["write everything out", "drop the page cache"]


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


def test_a_report_warns_of_unlike_caches(tmp_path: Path) -> None:
    page = text_of(make_report([experiment(tmp_path, caches("warm"), caches("as-is"))]))
    assert "the runs did not begin with the same caches: sata warm and nvme as-is." in page
    assert "warm: write everything out, drop the page cache" in page
