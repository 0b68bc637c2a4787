"""Both sides by phase: measures that no gate names, and in which phase one counts."""

from pathlib import Path

from analysis.comparing.page import comparison_page
from analysis.comparing.phase_table import phase_table
from tests.support.comparable import judged, reasons, runs_of, write_both
from tests.support.scripted_runs import add_events


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
