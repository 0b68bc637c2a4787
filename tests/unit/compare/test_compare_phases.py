"""Both sides by phase: measures that no gate names, and in which phase one counts."""

from pathlib import Path

from plimsoll.analysis.compare.comparison import Comparison
from plimsoll.analysis.compare.page import comparison_page, phase_table
from tests.support.comparable import judged, reasons, runs_of, write_both
from tests.support.experiment import add_events


def test_both_sides_stand_before_during_and_after_with_what_no_gate_names(tmp_path: Path) -> None:
    write_both(tmp_path, 2.0, measures=[("image ready", 250.0)])
    for path in runs_of(tmp_path, "nvme"):
        add_events(
            path, {"t_ns": 100000000, "event": "measure", "name": "image ready", "value": 50.0, "unit": "ms"}
        )
    found = judged(tmp_path)
    assert not any("image ready" in each.gate.name for each in found.judged)
    table = phase_table(found)
    assert table is not None
    rows = {row.name: row.cells for row in table.rows}
    assert rows["replay: image ready, nvme"] == ["50 ms", "250 ms", "–", "5 ×"]
    assert rows["replay: image ready, sata"] == ["–", "250 ms", "–", "–"]
    assert rows["replay: p99.9, nvme"][1].startswith("10")
    page = comparison_page(found)
    assert "<td>replay: image ready, nvme</td><td>50 ms</td><td>250 ms</td>" in page


def test_without_a_saturator_there_are_no_phases(tmp_path: Path) -> None:
    write_both(tmp_path, saturator=None, measures=[("image ready", 250.0)])
    assert phase_table(judged(tmp_path)) is None


def test_a_measure_counts_in_the_phase_in_which_it_began(tmp_path: Path) -> None:
    write_both(tmp_path)
    for path in runs_of(tmp_path, "sata") + runs_of(tmp_path, "nvme"):
        add_events(
            path, {"t_ns": 300000000, "event": "measure", "name": "save", "value": 150.0, "unit": "ms"}
        )
    gate = "gates:\n- {scenario: replay, phase: PHASE, metric: measure save, at_most_ratio: 2}\n"
    assert "has no save during the saturator" in reasons(judged(tmp_path, gate.replace("PHASE", "during")))
    assert judged(tmp_path, gate.replace("PHASE", "before")).verdict == "PASS"


SAVED = "gates:\n- {scenario: replay, phase: during, metric: measure saved, at_most_ratio: 1.5}\n"


def _with_saves(folder: Path, failed: dict[str, int], saves: int = 12) -> Comparison:
    """Judge runs whose saves take 50 ms, but for the last ones of a side, which fail."""
    write_both(folder)
    for side in ("nvme", "sata"):
        for path in runs_of(folder, side):
            for number in range(1, saves + 1):
                at = {"t_ns": 300_000_000 + number, "iteration": number}
                fails = number > saves - failed.get(side, 0)
                event = (
                    {"event": "iteration failed", "took_ms": 20.0}
                    if fails
                    else {"event": "measure", "name": "saved", "value": 50.0, "unit": "ms"}
                )
                add_events(path, at | event)
    return judged(folder, SAVED.replace("during", "whole"))


def _named(found: Comparison) -> list[str]:
    return [finding.label for finding in found.findings]


def test_a_disk_on_which_saves_fail_gets_no_pass_for_saving(tmp_path: Path) -> None:
    found = _with_saves(tmp_path, {"nvme": 5})
    assert found.verdict == "INCONCLUSIVE", "its median alone, of what succeeded, would be as before"
    assert "20 of 48 tries on nvme (42 %)" in reasons(found)
    assert "none of 48 tries on sata" in reasons(found)
    assert "A side that fails more is never the faster one" in reasons(found)
    assert _named(found).count("failed-measures") == 1


def test_where_most_saves_fail_the_gate_is_broken(tmp_path: Path) -> None:
    found = _with_saves(tmp_path, {"nvme": 7})
    assert found.verdict == "FAIL"
    assert "censored" in _named(found)


def test_failures_of_the_baseline_are_said_and_prevent_no_pass(tmp_path: Path) -> None:
    found = _with_saves(tmp_path, {"sata": 5})
    assert found.verdict == "PASS"
    assert "failed-measures" in _named(found)


def test_a_failure_in_hundreds_is_no_doubt(tmp_path: Path) -> None:
    found = _with_saves(tmp_path, {"nvme": 1}, saves=120)
    assert found.verdict == "PASS"
    assert "failed-measures" not in _named(found)


def test_failures_stand_beside_each_measure(tmp_path: Path) -> None:
    _with_saves(tmp_path, {})
    for path in runs_of(tmp_path, "sata"):
        for number in (20, 21, 22):
            add_events(path, {"t_ns": 10**8, "event": "iteration failed", "iteration": number, "took_ms": 1})
        add_events(
            path,
            *(
                {
                    "t_ns": 10**8,
                    "event": "measure",
                    "name": "saved",
                    "value": 5.0,
                    "unit": "ms",
                    "iteration": i,
                }
                for i in (1, 2)
            ),
        )
    table = phase_table(judged(tmp_path, SAVED))
    assert table is not None
    rows = {row.name: row.cells for row in table.rows}
    assert "failed)" in rows["replay: saved, sata"][0]
    assert "failed)" not in rows["replay: saved, nvme"][0]
