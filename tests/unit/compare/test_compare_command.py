"""`plimsoll compare`: what it prints, how it exits, which gates it takes, and its page."""

import json
import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from pydantic import BaseModel

from plimsoll.analysis.compare.gates import Gate, Gates, read_gates
from plimsoll.cli import main
from plimsoll.common.errors import SettingsError
from tests.support.comparable import runs_of, separated, write_both
from tests.support.programs import DOCS
from tests.support.rundir import change
from tests.unit.report.test_page import HOSTILE, _figures


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


def test_it_passes(tmp_path: Path) -> None:
    result = run(write_both(tmp_path), "--baseline", "sata", "--candidate", "nvme")
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
    result = run(write_both(tmp_path, 1.5), "--baseline", "sata", "--candidate", "nvme")
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
    result = run(write_both(tmp_path, 1.5), "--baseline", "sata", "--candidate", "nvme", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    documented = set(re.findall(r"`(\w+)`", _section("The JSON")))
    assert _keys(found) - _keys(found["differences"]) <= documented | {"at_most_ratio", "at_most_more"}
    gate = found["gates"][0]
    assert (gate["verdict"], gate["effect"], gate["limit"]) == ("FAIL", "ratio", {"at_most_ratio": 1.1})
    assert gate["estimate"] == pytest.approx(1.5, rel=0.01)
    assert gate["lower"] < gate["estimate"] < gate["upper"]
    assert len(gate["baseline"]["runs"]) == len(gate["candidate"]["runs"]) == 4
    assert gate["p_fail"] == pytest.approx(1 / 70)
    assert gate["p_fail_holm"] == pytest.approx(3 / 70)
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
    result = run(folder, "--baseline", "sata", "--candidate", "nvme", "--json", "--html", tmp_path / "x.html")
    found = json.loads(result.stdout)["differences"]
    assert found == [{"key": "tuning.vm.swappiness", "baseline": "60", "candidate": "10"}]
    assert "tuning.vm.swappiness" in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_a_saturator_that_began_again_is_a_caution(tmp_path: Path) -> None:
    folder = write_both(tmp_path)
    path = runs_of(folder, "nvme")[0] / "events.jsonl"
    retry = {"t_ns": 300_000_000, "event": "zfs-send retry", "error": "pool is busy"}
    path.write_text(path.read_text() + json.dumps(retry) + "\n")
    result = run(folder, "--baseline", "sata", "--candidate", "nvme", "--json")
    (found,) = [each for each in json.loads(result.stdout)["findings"] if each["name"] == "saturator-retried"]
    assert found["level"] == "warn"
    assert "had zfs-send fail and begin again 1 time" in found["text"]
    assert "pool is busy" in found["text"]


def _keys(value: object) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*(_keys(inner) for inner in value.values()))
    return set().union(*(_keys(inner) for inner in value)) if isinstance(value, list) else set()


def _section(title: str) -> str:
    text = (DOCS / "compare.md").read_text(encoding="utf-8")
    return text[text.index(f"## {title}") :].split("\n## ")[0]


WRONG_GATES = [
    ("nothing", "{}", "gates: is missing"),
    ("an empty list", "gates: []", "gates: must not be empty"),
    ("no limit", "gates:\n- {scenario: a}", "gates.0: has no limit: give at_most_ratio or at_most_ms"),
    ("an unknown key", "gates:\n- {scenario: a, at_most: 3}", "gates.0.at_most: is not a known key"),
    ("no scenario", "gates:\n- {at_most_ratio: 3}", "gates.0.scenario: is missing"),
    (
        "an unknown metric",
        "gates:\n- {scenario: a, metric: p98, at_most_ratio: 3}",
        "must be one of p99.9, p99",
    ),
    ("an unknown phase", "gates:\n- {scenario: a, phase: midway, at_most_ratio: 3}", "gates.0.phase"),
    (
        "a ratio of errors",
        "gates:\n- {scenario: a, metric: error share, at_most_ratio: 3}",
        "at_most_ratio: is not a limit of error share: give at_most_more or at_most_share",
    ),
    ("a share of times", "gates:\n- {scenario: a, at_most_share: 0.1}", "is not a limit of p99.9"),
    ("a negative ratio", "gates:\n- {scenario: a, at_most_ratio: -1}", "at_most_ratio"),
    ("NaN", "gates:\n- {scenario: a, at_most_ratio: .nan}", "at_most_ratio"),
    ("infinity", "gates:\n- {scenario: a, at_most_ms: .inf}", "at_most_ms"),
    ("a percentage", "confidence: 95\ngates:\n- {scenario: a, at_most_ratio: 3}", "confidence"),
    ("three runs", "least_runs: 3\ngates:\n- {scenario: a, at_most_ratio: 3}", "least_runs"),
    (
        "one gate twice",
        "gates:\n- {scenario: a, at_most_ratio: 3}\n- {scenario: a, at_most_ms: 3}",
        "gates.1: is gates.0 again",
    ),
    ("no YAML", "gates: [", "is not valid YAML"),
]


@pytest.mark.parametrize(("what", "text", "says"), WRONG_GATES, ids=[row[0] for row in WRONG_GATES])
def test_wrong_gates(tmp_path: Path, what: str, text: str, says: str) -> None:
    (tmp_path / "gates.yml").write_text(text)
    with pytest.raises(SettingsError) as refused:
        read_gates(tmp_path / "gates.yml")
    assert says in str(refused.value), what


def test_all_problems_of_the_gates_at_once(tmp_path: Path) -> None:
    (tmp_path / "gates.yml").write_text("confidence: 2\ngates:\n- {scenario: a, metric: x}\n- {phase: y}\n")
    with pytest.raises(SettingsError) as refused:
        read_gates(tmp_path / "gates.yml")
    assert len(str(refused.value).splitlines()) == 4


def test_every_key_of_the_gates_is_documented_and_none_that_there_is_not() -> None:
    def row(prefix: str, model: type[BaseModel]) -> list[tuple[str, str]]:
        return [(prefix + name, field.description or "") for name, field in model.model_fields.items()]

    wanted = {key: says.rstrip(".") for key, says in [*row("", Gates), *row("gates.", Gate)]}
    found = {}
    for line in _section("gates.yml").partition("| metric |")[0].splitlines():
        if line.startswith("| `"):
            key, _, says = (cell.strip() for cell in line.strip("|").split("|"))
            found[key.strip("`")] = says
    assert found == wanted


def test_the_gates_in_the_document_are_right(tmp_path: Path) -> None:
    text = re.search(r"```yaml\n(.*?)```", _section("gates.yml"), re.DOTALL)
    assert text
    (tmp_path / "gates.yml").write_text(text[1])
    assert len(read_gates(tmp_path / "gates.yml").gates) == len(yaml.safe_load(text[1])["gates"])


def test_the_page_begins_with_the_verdict(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = run(write_both(tmp_path, 1.5), "--baseline", "sata", "--candidate", "nvme", "--html", page)
    assert result.exit_code == 1
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "<title>FAIL: nvme against sata – Plimsoll</title>" in text
    places = [
        text.index(says) for says in ('class="verdict FAIL"', "The gates", "Candidate against", "Every run")
    ]
    assert places == sorted(places)
    assert "50 % slower than the baseline" in text
    assert set(_figures(text)) == {"effects", "repeats"}
    assert not re.search(r"(src|href)=.?https?:", text[: text.index('<script type="application/json"')])


def test_a_page_of_nothing_that_can_be_decided(tmp_path: Path) -> None:
    write_both(tmp_path, repeats=1)
    page = tmp_path / "page.html"
    assert run(*(runs_of(tmp_path, name)[0] for name in ("sata", "nvme")), "--html", page).exit_code == 3
    assert "a verdict takes 4: 3 more" in page.read_text(encoding="utf-8")


def hostile_sides(folder: Path) -> tuple[Path, Path]:
    """Two sides whose every name is an attack."""
    names = (HOSTILE[0], HOSTILE[6])
    write_both(folder, 1.5, 5, names=("a", "b"), measures=[(HOSTILE[2], 4.0)], saturator=None)
    sides = []
    for side, name in zip(("a", "b"), names, strict=True):
        there = folder / f"<b onmouseover=window.owned=1>{side}"
        there.mkdir()
        for path in runs_of(folder, side):
            moved = path.rename(there / path.name)
            (moved / "routes.json").write_text(json.dumps(HOSTILE))
            storage = {"emulated": HOSTILE[4], "facts": {HOSTILE[3]: f"{HOSTILE[5]}{side}"}}
            change(moved, backend=name, scenario=HOSTILE[3], storage=storage, reason=HOSTILE[1])
        sides.append(there)
    change(sorted(sides[0].iterdir())[0], status="failed")
    return sides[0], sides[1]


def test_hostile_names_are_text(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = run(*hostile_sides(tmp_path), "--html", page)
    assert result.exit_code == 3
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", result.stdout)
    text = page.read_text(encoding="utf-8")
    shown = text[: text.index('<script type="application/json"')]
    for attack in ("<script>window", "<img src=x", "<b onmouseover", '<a href="java'):
        assert attack not in shown
    raw = json.dumps(_figures(text))
    assert "<script>" not in raw
    assert "<img" not in raw
