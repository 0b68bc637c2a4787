"""The sample of mutants: what is chosen, which tests run, what becomes of each, when a result is lower."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import ROOT
from tools.mutants import (
    Difference,
    Mutant,
    Programs,
    Row,
    Sample,
    choose,
    list_python,
    main,
    read_profile,
    read_rows,
    select_tests,
    write_rows,
)

MEAN = "def mean(values):\n    return sum(values) / len(values)\n"
GATE = """class Gate:
    least = 5

    def passes(self, figure):
        if figure < 3 and self.least:
            return True
        return False
"""
LATER = "def mean(values):\n    return total(values) / 2 / 3\n"


def keys(folder: Path, **files: str) -> list[str]:
    """Return the keys of the mutants of these files."""
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return [one.key.removeprefix("python ") for one in list_python(folder, ["."])]


def test_mutants_are_named_after_what_they_are_in(tmp_path: Path) -> None:
    assert keys(tmp_path / "all", a=GATE + MEAN) == [
        "Gate.least NumberReplacer 0",
        "Gate.passes AddNot 0",
        "Gate.passes NumberReplacer 0",
        "Gate.passes ReplaceAndWithOr 0",
        "Gate.passes ReplaceComparisonOperator_Lt_GtE 0",
        "Gate.passes ReplaceComparisonOperator_Lt_LtE 0",
        "Gate.passes ReplaceFalseWithTrue 0",
        "Gate.passes ReplaceTrueWithFalse 0",
        "mean ReplaceBinaryOperator_Div_Mul 0",
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({"a": GATE + MEAN}, {"a": GATE, "b": MEAN}, id="a function moves to another file"),
        pytest.param({"a": GATE + MEAN}, {"a": MEAN + "\n\n" + GATE}, id="a function moves within its file"),
        pytest.param({"a": MEAN, "b": LATER}, {"a": LATER, "b": MEAN}, id="two of one name change places"),
    ],
)
def test_moving_code_changes_no_key(tmp_path: Path, before: dict[str, str], after: dict[str, str]) -> None:
    assert keys(tmp_path / "before", **before) == keys(tmp_path / "after", **after)


def test_a_new_function_displaces_only_as_many_as_it_brings() -> None:
    old = [a_mutant(function=f"f{number}") for number in range(100)]
    new = [a_mutant(function=f"new{number}") for number in range(10)]
    before, after = (choose(mutants, 50) for mutants in (old, new + old))
    came = [one for one in after if one in new]
    assert 0 < len(came) < 10
    assert [one for one in after if one in old] == before[: 50 - len(came)]


def a_mutant(
    function: str = "f", lines: tuple[int, int] = (2, 2), path: str = "a.py", text: str = ""
) -> Mutant:
    return Mutant("python", function, "AddNot", 0, path, *lines, text=text)


REACHED = {"a.py": {2: {"quick", "slow"}, 3: {"other"}, 5: set[str]()}}
SECONDS = {"quick": 1.0, "slow": 59.5, "other": 2.0}
REACHING = [
    ("the quickest first, and no more than a minute of them", (2, 2), "a.py", ["quick"]),
    ("an expression of several lines", (3, 5), "a.py", ["other"]),
    ("a constant, which no test reaches, but its file", (1, 1), "a.py", ["quick", "other"]),
    ("a file that no test reaches", (2, 2), "b.py", []),
]


@pytest.mark.parametrize(
    ("lines", "path", "wanted"), [row[1:] for row in REACHING], ids=[row[0] for row in REACHING]
)
def test_tests_that_reach_a_mutant(lines: tuple[int, int], path: str, wanted: list[str]) -> None:
    assert select_tests(a_mutant(lines=lines, path=path), REACHED, SECONDS) == wanted


def test_the_lines_that_go_reached() -> None:
    profile = "mode: set\nplimsoll/replay/a.go:3.2,5.9 2 1\nplimsoll/replay/a.go:7.2,8.3 1 0\n"
    assert list(read_profile(profile)) == [("replay/a.go", line) for line in (3, 4, 5)]


OUTCOMES = [
    ("a test fails", "def f(): return 2\n", "killed"),
    ("it cannot be imported", "def g(): return 1\n", "killed"),
    ("no test fails", "def f(): return 1.0\n", "survived"),
]


@pytest.mark.parametrize(("text", "result"), [row[1:] for row in OUTCOMES], ids=[row[0] for row in OUTCOMES])
def test_what_becomes_of_a_mutant(tmp_path: Path, text: str, result: str) -> None:
    original, test = tmp_path / "a.py", "test_a.py::test_f"
    original.write_text("def f(): return 1\n")
    (tmp_path / "test_a.py").write_text("from a import f\n\ndef test_f():\n    assert f() == 1\n")
    sample = Sample(tmp_path, 1)
    sample.reached, sample.seconds = {"a.py": {1: {test}}}, {test: 0.1}
    assert sample.judge(a_mutant(lines=(1, 1), text=text), tmp_path) == result
    assert original.read_text() == "def f(): return 1\n"


def test_a_program_that_takes_too_long_is_ended_with_what_it_started(tmp_path: Path) -> None:
    script = "(sleep 5; echo late >late) & echo begun; wait"
    assert Programs().run(["sh", "-c", script], tmp_path, timeout_s=1) == (None, "begun\n")
    assert not (tmp_path / "late").exists()  # what it printed has ended, so that nobody is left to write it


def rows(**results: str) -> list[Row]:
    """Return rows by function: k for killed, t for timeout, s for survived."""
    words = {"k": "killed", "t": "timeout", "s": "survived"}
    return [Row("go", function, "remove", 0, words[letter], "a.go:1") for function, letter in results.items()]


def many(letters: str) -> list[Row]:
    return rows(**{f"f{number}": letter for number, letter in enumerate(letters)})


DIFFERENCES = [
    ("the same", many("kkss"), many("kkss"), 1.0, False),
    ("a timeout kills too", many("kkkkkk"), many("tttttt"), 1.0, False),
    ("five lost may be chance", many("kkkkk"), many("sssss"), 2 / 2**5, False),
    ("six lost are no chance", many("kkkkkk"), many("ssssss"), 2 / 2**6, True),
    ("six won are not lower", many("ssssss"), many("kkkkkk"), 2 / 2**6, False),
    ("six lost, and one won", many("kkkkkks"), many("ssssssk"), 2 * (1 + 7) / 2**7, False),
    ("what one of them lacks does not count", many("kkkkkk"), rows(f0="s", g="s"), 1.0, False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "p", "lower"), [row[1:] for row in DIFFERENCES], ids=[row[0] for row in DIFFERENCES]
)
def test_the_paired_difference(before: list[Row], after: list[Row], p: float, lower: bool) -> None:
    difference = Difference(before, after)
    assert (difference.p, difference.is_lower) == (pytest.approx(p), lower)


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "mutants.csv"
    write_rows(path, rows(one="k", two="t"))
    assert read_rows(path) == rows(one="k", two="t")


def test_without_an_earlier_result_it_is_written_and_nothing_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = Row("python", "f", "AddNot", 0, "killed", "a/b.py:1")
    monkeypatch.setattr(Sample, "run", lambda _: [row])
    monkeypatch.setattr("sys.argv", ["mutants.py", "run", str(tmp_path), ""])
    main()
    assert read_rows(tmp_path / "mutants.csv") == [row]
    assert "1 of   1 killed" in capsys.readouterr().out


def test_go_mutants_compile_and_differ(tmp_path: Path) -> None:
    program = ROOT / "bin" / "gomutants"
    if not program.exists():
        pytest.skip("bin/gomutants is not built: make bin/gomutants")
    (tmp_path / "go.mod").write_text("module a\n\ngo 1.26\n")
    source = (
        "package a\n\ntype T struct{ n int }\n\nfunc (t *T) add(s []int) {\n\tm := s[:]\n\tt.n += len(m)\n}\n"
    )
    (tmp_path / "a.go").write_text(source)
    listed = subprocess.run(
        [program, "seed", "9", "."], cwd=tmp_path, capture_output=True, check=True, text=True
    )
    found = {one["operator"]: one for one in map(json.loads, listed.stdout.splitlines())}
    # Without its statement nobody would use m: that does not compile.
    assert {operator: (one["function"], one["line"]) for operator, one in found.items()} == {
        "+= to -=": ("T.add", 7)
    }
    assert found["+= to -="]["text"] == source.replace("+=", "-=")
