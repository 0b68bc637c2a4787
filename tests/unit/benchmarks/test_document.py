"""docs/peers.md: what is written anew, and what is kept."""

from dataclasses import replace

from benchmarks.document import BEGIN, END, document, table
from benchmarks.result import Goal, Result


def _result() -> Result:
    return Result(
        case="max",
        title="As fast as it goes",
        setting="On loopback.",
        goals=[Goal("requests/s against wrk", "0.93 × (0.91 to 0.95)", "≥ 1 ×", False)],
        columns=["program", "requests/s"],
        rows=[["wrk", "100,000"]],
        notes=["A note."],
        rounds=5,
        date="2026-11-20 12:00 UTC",
        machine={"CPU": "a CPU, 2 cores", "load when it began": "0.01"},
        versions={"wrk": "4.1.0", "hey": "not installed: go is not there, which installs it"},
    )


def test_a_page_says_what_was_not_reached_and_on_what_machine() -> None:
    page = document([_result()], None)
    assert "not reached: 0.93 × (0.91 to 0.95)" in page
    assert "a CPU, 2 cores" in page
    assert "4.1.0" in page
    assert "not installed: go is not there, which installs it" in page
    assert "*2026-11-20 12:00 UTC, 5 rounds, load of the machine when it began 0.01.*" in page


def test_a_page_says_what_the_hypervisor_took() -> None:
    quiet, busy = replace(_result(), stolen_share=0.004), replace(_result(), stolen_share=0.41)
    taken = "% of the processors' time taken by the hypervisor"
    said = document([quiet, busy], None).replace("\n", " ")
    assert f"0.01, 0.4{taken}.*" in said
    assert f"0.01, 41.0{taken}; measure again on a quieter machine.*" in said


def test_a_page_without_figures_says_how_to_get_them() -> None:
    assert "Nothing was measured yet: `make peers` does it." in document([], None)


def test_what_people_wrote_is_kept() -> None:
    first = document([_result()], None)
    edited = first.replace("Nothing has been written here yet.", "Because of X.").replace(
        "# How", "# Just how"
    )
    changed = _result()
    changed.rows = [["wrk", "200,000"]]
    second = document([changed], edited)
    assert "Because of X." in second
    assert second.startswith("# Just how")
    assert "200,000" in second
    assert "100,000" not in second
    assert second.count(BEGIN) == second.count(END) == 1


def test_a_result_survives_being_kept_as_json() -> None:
    assert Result.from_json(_result().to_json()) == _result()


def test_cells_cannot_break_the_table() -> None:
    assert table(["a"], [["x|y\nz"]]).splitlines()[2] == "| x\\|y z |"
