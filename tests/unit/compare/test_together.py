"""Runs that loaded one clone together: each is a run of its own, in its company, for every command."""

import json
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.compare.comparison import Comparison, compare
from plimsoll.analysis.evidence.finding import FindingKind
from plimsoll.analysis.regress.intake import select_runs
from plimsoll.analysis.report.making import make_report
from plimsoll.analysis.signoff.page import scenarios_table
from plimsoll.rundir.find import find_runs, open_runs, relative_name, run_group
from tests.support.comparable import STEADY, instant, write_comparable

MEMBERS = ("replay", "upload-images", "download")
BACKENDS = ("sata", "nvme")


def write_together(folder: Path, crowd: tuple[str, str] = ("d1", "d1"), repeats: int = 4) -> Path:
    """An experiment of one entry of three members; `crowd` are digests of the crowd's load, by side."""
    for repeat in range(1, repeats + 1):
        for place, side in enumerate((0, 1) if repeat % 2 else (1, 0)):
            number = 2 * (repeat - 1) + place + 1
            _write_run(folder, number, side, repeat, crowd[side])
    lab = {"name": "lab", "backends": [1, 2], "repeats": repeats, "scenarios": [{"together": list(MEMBERS)}]}
    (folder / "lab.json").write_text(json.dumps(lab))
    return folder


def _write_run(folder: Path, number: int, side: int, repeat: int, crowd: str) -> None:
    run = f"{number:04d}-rush--{BACKENDS[side]}--{repeat}"
    others = {
        name: {"member": name, "scenario": name, "crowd": name == "replay", "from_s": -0.1, "to_s": 9.0}
        | ({"load": crowd, "speed": "users 10000"} if name == "replay" else {"load": "x"})
        for name in MEMBERS
    }
    for place, member in enumerate(MEMBERS):
        tail_ms = 50 * STEADY[(repeat + 2 * side) % len(STEADY)] + place
        together: dict[str, Any] = {
            "run": run,
            "entry": "rush",
            "member": member,
            "others": [other for name, other in others.items() if name != member],
        }
        write_comparable(
            folder / "runs" / run / member,
            BACKENDS[side],
            repeat,
            number,
            tail_ms,
            scenario=f"rush/{member}",
            count=1500 + place,  # so that none is a copy of another
            experiment={"name": "lab", "run": number, "of": 8},
            target={"url": "http://clone"},
            together=together,
        )
    (folder / "runs" / run / "together.json").write_text(json.dumps({"format": 1, "members": MEMBERS}))


def compared(folder: Path, gates: Path | None = None) -> Comparison:
    return compare([folder], "sata", "nvme", gates)


def test_a_folder_of_runs_together_stands_for_them_wherever_it_is_found(tmp_path: Path) -> None:
    runs = write_together(tmp_path, repeats=1) / "runs"
    names = [relative_name(run) for run in find_runs(runs)]
    assert names == [f"{run}/{m}" for run in sorted(p.name for p in runs.iterdir()) for m in sorted(MEMBERS)]
    one = runs / "0001-rush--sata--1"
    assert [run.name for run in find_runs(one)] == sorted(MEMBERS), "the folder itself"
    assert run_group(one / "replay") == one.resolve()
    assert relative_name(one) == "0001-rush--sata--1", "a run that is no member has its directory's name"
    assert len(open_runs([runs, one, one / "replay"]).runs) == 6, "each once"


def test_members_did_not_disturb_each_other_and_each_is_compared_with_its_like(tmp_path: Path) -> None:
    found = compared(write_together(tmp_path))
    assert [verdict.gate.scenario for verdict in found.judged if verdict.gate.metric != "answers"] == [
        *["rush/replay"] * 3,
        *["rush/upload-images"] * 3,
    ], "the control is judged by nobody"
    kinds = {finding.kind for finding in found.findings}
    assert not kinds & {FindingKind.OVERLAP, FindingKind.COPY, FindingKind.OTHER_LOAD, FindingKind.UNFINISHED}


def test_a_gate_can_name_any_member(tmp_path: Path) -> None:
    gates = tmp_path / "gates.yml"
    gates.write_text("gates: [{scenario: rush/upload-images, metric: p99, at_most_ratio: 1.5}]")
    found = compared(write_together(tmp_path / "lab"), gates)
    outcomes = {(each.gate.scenario, each.gate.metric): each.verdict.outcome for each in found.judged}
    assert outcomes["rush/upload-images", "p99"] == "PASS"


@pytest.mark.parametrize(
    ("why", "crowd", "differs"),
    [("the same crowd on both sides", ("d1", "d1"), False), ("a larger crowd on one", ("d1", "d2"), True)],
)
def test_the_crowd_is_a_part_of_what_a_run_went_through(
    why: str, crowd: tuple[str, str], differs: bool, tmp_path: Path
) -> None:
    found = compared(write_together(tmp_path, crowd))
    others = [each for each in found.findings if each.kind is FindingKind.OTHER_LOAD]
    of_author = [each for each in others if each.scenario == "rush/upload-images"]
    assert bool(of_author) is differs, why
    assert not differs or "together_with (download x, replay d1 / download x, replay d2)" in of_author[0].text


def test_a_history_knows_how_many_runs_a_night_was_to_have(tmp_path: Path) -> None:
    folder = write_together(tmp_path / "lab-20261121T040000Z")
    found = select_runs([folder])
    assert {night.planned for night in found.nights} == {2 * 4 * 3}
    assert len(found.runs) == 24
    assert len({run.night.key for run in found.runs}) == 1
    alone = select_runs([folder / "runs" / "0001-rush--sata--1" / "replay"])
    assert [night.key for night in alone.nights] == [night.key for night in found.nights], "named by itself"


def test_report_and_signoff_show_each_member_with_its_crowd(tmp_path: Path) -> None:
    folder = write_together(tmp_path)
    report = make_report([folder])
    page = report.path.read_text(encoding="utf-8")
    assert len(report.runs) == 24
    assert "disturbed each other" not in page
    assert "began in another order" not in page
    assert "At the same time on the same clone: replay (users 10000), upload-images" in page
    assert "replay (the crowd), users 10000, from -0.1 to 9.0 s" in page
    rows = [row.cells for row in scenarios_table(compared(folder)).rows]
    assert any(cells[-1] == "replay (users 10000), download" for cells in rows)


def test_a_report_counts_what_ran_together_as_one_run(tmp_path: Path) -> None:
    folder = write_together(tmp_path, repeats=1)
    page = make_report([folder]).path.read_text(encoding="utf-8")
    assert "Experiment lab: 2 runs<" in page, "not the six directories"


def test_a_report_says_when_a_member_was_without_its_crowd(tmp_path: Path) -> None:
    folder = write_together(tmp_path, repeats=1)
    path = folder / "runs" / "0001-rush--sata--1" / "upload-images"
    facts = json.loads((path / "run.json").read_text())
    facts["together"]["others"][0]["to_s"] = 0.2
    (path / "run.json").write_text(json.dumps(facts | {"started_at": instant(0)}))
    page = make_report([path]).path.read_text(encoding="utf-8")
    assert "after replay, its crowd, had left" in page
