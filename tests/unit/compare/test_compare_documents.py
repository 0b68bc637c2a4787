"""`--junit` and `--markdown` of compare and signoff: each verdict, whatever the names are made of."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from plimsoll.cli import main
from tests.support.comparable import runs_of, separated, write_both
from tests.support.programs import DOCS
from tests.support.rundir import change

HOSTILE = "<b>|x|\x1b[31m@all ]]>\n# y\ufffe"
NAMES = ["--baseline", "sata", "--candidate", "nvme"]


def run(command: str, folder: Path, *words: str | Path) -> Result:
    files = ["--junit", folder / "junit.xml", "--markdown", folder / "summary.md"]
    return CliRunner().invoke(main, [command, *map(str, [*words, *files])])


def cases(folder: Path, kind: str = "") -> list[ET.Element]:
    root = ET.fromstring((folder / "junit.xml").read_bytes())  # noqa: S314 our own
    return root.findall(f"testsuite/testcase/{kind}".rstrip("/"))


@pytest.mark.parametrize(
    ("why", "slower", "failures", "code"),
    [("every limit is kept", 1.0, 0, 0), ("two are broken", 1.5, 2, 1)],
)
def test_a_case_a_limit(tmp_path: Path, why: str, slower: float, failures: int, code: int) -> None:
    ran = run("compare", tmp_path, write_both(tmp_path / "runs", slower), *NAMES)
    assert ran.exit_code == code, why
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
    ran = run("compare", tmp_path, *separated(tmp_path / "runs", repeats=3))
    assert ran.exit_code == 3
    errors = cases(tmp_path, "error")
    assert [one.get("type") for one in errors][:4] == ["inconclusive"] * 4
    assert "a verdict takes 4: 1 more" in str(errors[0].get("message"))
    assert (tmp_path / "summary.md").read_text().count("| **INCONCLUSIVE** |") == 4


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    folder = write_both(tmp_path / "runs")
    for path in runs_of(folder, "nvme"):
        change(path, backend=HOSTILE)
    ran = run("compare", tmp_path, folder, "--baseline", "sata", "--candidate", HOSTILE)
    assert ran.exit_code == 0, ran.output
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
    for command in (["compare"], ["signoff", "--gates", str(_gates()), "--out", str(tmp_path / "out")]):
        ran = CliRunner().invoke(
            main, [*command, str(tmp_path / "none"), "--junit", str(tmp_path / "junit.xml")]
        )
        assert ran.exit_code == 2
        assert "junit.xml: is a directory; give the name of a file" in ran.output


def _gates() -> Path:
    return DOCS.parent / "examples" / "gates.yml"


def test_a_signoff_writes_them_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.analysis.signoff.pdf.find_chromium", lambda: None)
    folder, gates, out = write_both(tmp_path / "runs"), tmp_path / "gates.yml", tmp_path / "signed"
    gates.write_text("gates:\n  - {scenario: replay, metric: p99.9, at_most_ratio: 1.1}\n")
    ran = run("signoff", tmp_path, folder, *NAMES, "--gates", gates, "--out", out)
    assert ran.exit_code == 0, ran.output
    assert {str(one.get("classname")) for one in cases(tmp_path)} == {"plimsoll.signoff"}
    assert (tmp_path / "summary.md").read_text().startswith("# Plimsoll: PASS\n")
