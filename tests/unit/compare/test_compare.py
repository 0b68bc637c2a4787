"""`plimsoll compare`: what it prints, how it exits, its page, its JSON, `--junit` and `--markdown`."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from plimsoll.cli import main
from tests.support.comparable import (
    BACKENDS,
    compare_json,
    gated,
    runs_of,
    separated,
    write_both,
    write_gates,
)
from tests.support.docs import section
from tests.support.pages import figures_in, write_hostile_sides
from tests.support.programs import DOCS
from tests.support.rundir import change


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


def test_it_passes(tmp_path: Path) -> None:
    result = run(write_both(tmp_path), *BACKENDS)
    assert result.exit_code == 0
    first, _, heading, *rows = result.stdout.splitlines()
    *rows, empty, claim, rest = rows
    assert not empty
    rows, phases = rows[: rows.index("")], rows[rows.index("") + 1 :]
    assert phases[0].split() == ["before", "during", "after", "during", "÷", "before"]
    assert [row.split()[:3] for row in phases[1:]] == [
        ["replay:", "p99.9,", side] for side in ("sata", "nvme")
    ]
    assert claim.startswith("A PASS from 4 runs excludes, at 95 %, only stalls that come in more than 53 %")
    assert rest == "  been missed."
    assert first == "PASS: nvme against sata: 4 limits checked, 4 passed."
    assert " ".join(heading.split()) == "verdict gate sata nvme effect 90 % interval limit runs"
    assert [row.split()[0] for row in rows] == ["PASS"] * 4
    assert rows[0].endswith("4 v 4")
    assert "≤ × 1.10" in rows[0]
    assert result.stderr == ""


def test_it_fails_and_says_where(tmp_path: Path) -> None:
    result = run(write_both(tmp_path, 1.5), *BACKENDS)
    assert result.exit_code == 1
    assert result.stdout.startswith("FAIL: nvme against sata: 4 limits checked, 2 passed, 2 failed.")
    assert (
        "replay during: p99.9 ≤ × 1.10, replay whole: p99.9 ≤ × 1.10: 50 % slower than the" in result.stdout
    )


def test_it_does_not_know_and_says_what_to_do(tmp_path: Path) -> None:
    result = run(*separated(tmp_path, repeats=3))
    assert result.exit_code == 3
    assert result.stdout.startswith(
        "INCONCLUSIVE: after against before: 4 limits checked, 4 cannot be decided yet."
    )
    assert "after has 3 runs of replay, and a verdict takes 4: 1 more." in " ".join(result.stdout.split())
    assert "warning: All runs of the baseline came first" in result.stdout


USAGE = [
    ("no side", [], "Missing argument"),
    ("three", ["a", "b", "c"], "two sides at most"),
    ("none there", ["nowhere", "nowhere"], "does not exist"),
    ("no such file of gates", [".", "--gates", "nothing.yml"], "nothing.yml: cannot be read"),
    ("the page is a folder", [".", "--html", "."], "is a directory"),
]


@pytest.mark.parametrize(("what", "arguments", "says"), USAGE, ids=[row[0] for row in USAGE])
def test_wrong_usage(what: str, arguments: list[str], says: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2, what
    assert says in result.stderr


def test_json_has_all_of_it(tmp_path: Path) -> None:
    result = run(write_both(tmp_path, 1.5), *BACKENDS, "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    documented = set(re.findall(r"`(\w+)`", section("compare.md", "The JSON")))
    assert _keys(found) - _keys(found["differences"]) <= documented | {"at_most_ratio", "at_most_more"}
    gate = found["gates"][0]
    assert (gate["verdict"], gate["effect"], gate["limit"]) == ("FAIL", "ratio", {"at_most_ratio": 1.1})
    assert gate["estimate"] == pytest.approx(1.5, rel=0.01)
    assert gate["lower"] < gate["estimate"] < gate["upper"]
    assert len(gate["baseline"]["runs"]) == len(gate["candidate"]["runs"]) == 4
    assert gate["p_fail"] == pytest.approx(1 / 70)
    assert gate["p_fail_adjusted"] == pytest.approx(1 / 70), (
        "the gates move together, and no run has an error"
    )
    assert (gate["test"], gate["arrangements"]) == ("unpaired", 70)
    assert [len(found[side]["runs"]) for side in ("baseline", "candidate")] == [4, 4]


def test_a_difference_in_tuning_is_never_hidden(tmp_path: Path) -> None:
    folder = write_both(tmp_path)
    for backend, value in (("sata", "60"), ("nvme", "10")):
        for path in runs_of(folder, backend):
            tuning = [
                {"key": "vm.swappiness", "was": "60", "set": value},
                {"key": "zfs.zfs_txg_timeout", "was": "5", "set": "1"},
            ]
            change(path, storage={"clone": {"driver": "static"}, "facts": {}, "tuning": tuning})
    result = run(folder, *BACKENDS, "--json", "--html", tmp_path / "x.html")
    found = json.loads(result.stdout)["differences"]
    assert found == [{"key": "tuning.vm.swappiness", "baseline": "60", "candidate": "10"}]
    assert "tuning.vm.swappiness" in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_a_saturator_that_began_again_is_a_caution(tmp_path: Path) -> None:
    folder = write_both(tmp_path)
    path = runs_of(folder, "nvme")[0] / "events.jsonl"
    retry = {"t_ns": 300_000_000, "event": "zfs-send retry", "error": "pool is busy"}
    path.write_text(path.read_text() + json.dumps(retry) + "\n")
    result = run(folder, *BACKENDS, "--json")
    (found,) = [each for each in json.loads(result.stdout)["findings"] if each["name"] == "saturator-retried"]
    assert found["level"] == "warn"
    assert "had zfs-send fail and begin again 1 time" in found["text"]
    assert "pool is busy" in found["text"]


def _keys(value: object) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*(_keys(inner) for inner in value.values()))
    return set().union(*(_keys(inner) for inner in value)) if isinstance(value, list) else set()


def test_the_page_begins_with_the_verdict(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = run(write_both(tmp_path, 1.5), *BACKENDS, "--html", page)
    assert result.exit_code == 1
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "<title>FAIL: nvme against sata – Plimsoll</title>" in text
    places = [
        text.index(says) for says in ('class="verdict FAIL"', "The gates", "Candidate against", "Every run")
    ]
    assert places == sorted(places)
    assert "50 % slower than the baseline" in text
    assert set(figures_in(text)) == {"effects", "repeats"}
    assert not re.search(r"(src|href)=.?https?:", text[: text.index('<script type="application/json"')])


def test_a_page_of_nothing_that_can_be_decided(tmp_path: Path) -> None:
    write_both(tmp_path, repeats=1)
    page = tmp_path / "page.html"
    assert run(*(runs_of(tmp_path, name)[0] for name in ("sata", "nvme")), "--html", page).exit_code == 3
    assert "a verdict takes 4: 3 more" in page.read_text(encoding="utf-8")


def test_hostile_names_are_text_on_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = run(*write_hostile_sides(tmp_path), "--html", page)
    assert result.exit_code == 3
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", result.stdout)
    text = page.read_text(encoding="utf-8")
    shown = text[: text.index('<script type="application/json"')]
    for attack in ("<script>window", "<img src=x", "<b onmouseover", '<a href="java'):
        assert attack not in shown
    raw = json.dumps(figures_in(text))
    assert "<script>" not in raw
    assert "<img" not in raw


def test_the_page_says_what_these_runs_would_have_found(tmp_path: Path) -> None:
    write_both(tmp_path)
    page = tmp_path / "page.html"
    compare_json(tmp_path, "", "--html", page)
    text = page.read_text(encoding="utf-8")
    assert "4 runs a side that lie as far apart as these find in 4 of 5 cases" in text
    assert "only stalls that come in more than 53 % of runs" in text


HOSTILE_NAME = "<b>|x|\x1b[31m@all ]]>\n# y\ufffe"


def write_documents(command: str, folder: Path, *words: str | Path) -> Result:
    files = ["--junit", folder / "junit.xml", "--markdown", folder / "summary.md"]
    return CliRunner().invoke(main, [command, *map(str, [*words, *files])])


def cases(folder: Path, kind: str = "") -> list[ET.Element]:
    root = ET.fromstring((folder / "junit.xml").read_bytes())  # noqa: S314 our own
    return root.findall(f"testsuite/testcase/{kind}".rstrip("/"))


@pytest.mark.parametrize(
    ("why", "slower", "failures", "code"), [("every limit is kept", 1.0, 0, 0), ("two are broken", 1.5, 2, 1)]
)
def test_a_case_a_limit(tmp_path: Path, why: str, slower: float, failures: int, code: int) -> None:
    result = write_documents("compare", tmp_path, write_both(tmp_path / "runs", slower), *BACKENDS)
    assert result.exit_code == code, why
    found = cases(tmp_path, "failure")
    assert len(found) == failures, why
    assert all("50 % slower" in str(one.get("message")) for one in found)
    assert {str(one.get("classname")) for one in cases(tmp_path)} == {"plimsoll.compare"}
    names = [str(one.get("name")) for one in cases(tmp_path)]
    assert "replay during: p99.9 ≤ × 1.10" in names
    text = (tmp_path / "summary.md").read_text()
    assert text.startswith(f"# Plimsoll: {'FAIL' if failures else 'PASS'}\n")
    assert text.count("| **FAIL** |") == failures
    assert text.count("\n| PASS |") == 4 - failures


def test_what_cannot_be_told_is_an_error_and_never_a_silent_pass(tmp_path: Path) -> None:
    result = write_documents("compare", tmp_path, *separated(tmp_path / "runs", repeats=3))
    assert result.exit_code == 3
    errors = cases(tmp_path, "error")
    assert [one.get("type") for one in errors][:4] == ["inconclusive"] * 4
    assert "a verdict takes 4: 1 more" in str(errors[0].get("message"))
    assert (tmp_path / "summary.md").read_text().count("| **INCONCLUSIVE** |") == 4


def test_hostile_names_are_text_in_the_documents(tmp_path: Path) -> None:
    folder = write_both(tmp_path / "runs")
    for path in runs_of(folder, "nvme"):
        change(path, backend=HOSTILE_NAME)
    result = write_documents("compare", tmp_path, folder, "--baseline", "sata", "--candidate", HOSTILE_NAME)
    assert result.exit_code == 0, result.output
    assert cases(tmp_path)
    for name in ("junit.xml", "summary.md"):
        text = (tmp_path / name).read_text()
        assert "<b>" not in text
        assert "\x1b" not in text
        assert "\n# y" not in text
    assert all(line.count("|") - line.count("\\|") == 9 for line in _table(tmp_path / "summary.md"))


def _table(path: Path) -> list[str]:
    rows = [line for line in path.read_text().splitlines() if line.startswith("|")]
    assert len(rows) == 6
    return rows


def test_a_folder_in_their_place_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").mkdir()
    gates = DOCS.parent / "examples" / "gates.yml"
    for command in (["compare"], ["signoff", "--gates", gates, "--out", tmp_path / "out"]):
        words = [*command, tmp_path / "none", "--junit", tmp_path / "junit.xml"]
        result = CliRunner().invoke(main, [*map(str, words)])
        assert result.exit_code == 2
        assert "junit.xml: is a directory; give the name of a file" in result.output


def test_a_signoff_writes_them_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.analysis.signoff.pdf.find_chromium", lambda: None)
    gates = write_gates(tmp_path, gated("metric: p99.9, at_most_ratio: 1.1"))
    sides, out = (write_both(tmp_path / "runs"), *BACKENDS), tmp_path / "signed"
    result = write_documents("signoff", tmp_path, *sides, "--gates", gates, "--out", out)
    assert result.exit_code == 0, result.output
    assert {str(one.get("classname")) for one in cases(tmp_path)} == {"plimsoll.signoff"}
    assert (tmp_path / "summary.md").read_text().startswith("# Plimsoll: PASS\n")
