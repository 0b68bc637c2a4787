"""`plimsoll signoff`: verdicts, what the document says, and when it refuses."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from plimsoll.rundir.records import HEADER_BYTES, RECORD
from tests.support.comparable import (
    BACKENDS,
    GATES,
    runs_of,
    separated,
    sign_off,
    sign_off_in,
    signed_off,
    visible_words,
    write_both,
    write_comparable,
    write_gates,
)
from tests.support.pages import HOSTILE, figures_in, write_hostile_sides
from tests.support.rundir import change, change_records


def page_of(out: Path) -> str:
    return (out / "signoff.html").read_text(encoding="utf-8")


VERDICTS = [
    ("alike sides pass", 1.0, 0, "PASS"),
    ("a slower candidate fails", 1.5, 1, "FAIL"),
    ("near the limit nobody can tell", 1.1, 3, "INCONCLUSIVE"),
]


@pytest.mark.parametrize(("what", "ratio", "code", "verdict"), VERDICTS, ids=[row[0] for row in VERDICTS])
def test_verdicts(tmp_path: Path, what: str, ratio: float, code: int, verdict: str) -> None:
    write_both(tmp_path / "experiment", ratio)
    result, out = sign_off_in(tmp_path), tmp_path / "signed"
    assert result.exit_code == code, what
    assert result.stdout.startswith(f"{verdict}: nvme against sata: 3 limits checked")
    assert result.stdout.endswith(f"document: {out}/signoff.html\n")
    assert f'<span class="verdict {verdict}">{verdict}</span>' in page_of(out)
    assert json.loads((out / "signoff.json").read_text())["comparison"]["verdict"] == verdict


def test_the_first_page_quotes_a_rehearsal_in_the_folder_or_beside_it_of_the_same_site(
    tmp_path: Path,
) -> None:
    experiment = write_both(tmp_path / "experiment")
    for run in (experiment / "runs").iterdir():
        change(run, target={"url": "http://10.0.0.5"})
    beside = tmp_path / "rehearse-1" / "rehearsal.json"
    beside.parent.mkdir()
    for place, target, is_quoted in (
        (beside, "http://10.0.0.9", False),
        (beside, "http://10.0.0.5", True),
        (experiment / "rehearsal.json", None, True),
    ):
        place.write_text(json.dumps({"says": f"Here, <b>{target} is found.", "target": target}))
        sign_off_in(tmp_path)
        assert (f"Here, &lt;b&gt;{target} is found." in visible_words(tmp_path / "signed")) == is_quoted, (
            place
        )
        shutil.rmtree(tmp_path / "signed")
    place.write_text("[]")
    assert sign_off_in(tmp_path).exit_code == 0


def test_without_a_browser_it_says_so_and_writes_the_rest(tmp_path: Path) -> None:
    write_both(tmp_path / "e")
    out = tmp_path / "new" / "folder" / "signed"
    result = sign_off(tmp_path / "e", *BACKENDS, "--gates", write_gates(tmp_path), "--out", out)
    assert result.stderr == (
        "plimsoll signoff: without a PDF: no Chromium is installed (Debian: chromium); print signoff.html.\n"
    )
    assert sorted(path.name for path in out.iterdir()) == [
        "MANIFEST",
        "SHA256SUMS",
        "gates.yml",
        "signoff.html",
        "signoff.json",
    ]
    assert (out / "gates.yml").read_text() == GATES
    assert out.stat().st_mode & 0o777 == 0o777 & ~_umask()
    assert [path.name for path in out.parent.iterdir()] == ["signed"], "nothing of its making is left"


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _killed_run(run: Path) -> None:
    change(run, status="running")
    os.utime(run / "requests.npy", (0, 0))


NEVER_PASS: list[tuple[str, Callable[[Path], object], str]] = [
    ("limited by its generator", lambda r: change(r, generator_limited=True), "limited by the load gener"),
    (
        "late, though it does not say so",
        lambda r: change_records(r, lag_us=40_000),
        "sent late",
    ),
    ("interrupted", lambda r: change(r, status="interrupted"), "was interrupted"),
    ("failed", lambda r: change(r, status="failed", reason="no route"), "failed (no route)"),
    ("killed", _killed_run, "was killed"),
    ("without its summary", lambda r: (r / "summary.json").unlink(), "summary.json is missing"),
    (
        "truncated",
        lambda r: os.truncate(r / "requests.npy", HEADER_BYTES + 700 * RECORD.itemsize),
        "is truncated",
    ),
    ("cannot be read", lambda r: (r / "run.json").write_text("{"), "is not JSON"),
    ("another seed", lambda r: change(r, seed=2), "seed"),
    ("another speed", lambda r: change(r, speed="2"), "speed"),
]


@pytest.mark.parametrize(("what", "spoil", "says"), NEVER_PASS, ids=[row[0] for row in NEVER_PASS])
def test_it_never_passes(tmp_path: Path, what: str, spoil: Callable[[Path], object], says: str) -> None:
    spoil(runs_of(write_both(tmp_path / "experiment", 0.5))[0])
    assert sign_off_in(tmp_path).exit_code == 3, what
    assert says in visible_words(tmp_path / "signed")


INTERLEAVED = [
    ("sides one after the other decide nothing by default", "", 3, "alternate"),
    ("nor where the gates say so", "interleaved: true\n", 3, "alternate"),
    (
        "but where the gates allow it, which the document says",
        "interleaved: false\n",
        0,
        "interleaved: false",
    ),
]


@pytest.mark.parametrize(("what", "key", "code", "says"), INTERLEAVED, ids=[row[0] for row in INTERLEAVED])
def test_interleaved(tmp_path: Path, what: str, key: str, code: int, says: str) -> None:
    sides = separated(tmp_path)
    out = tmp_path / "signed"
    result = sign_off(*sides, "--gates", write_gates(tmp_path, key + GATES), "--out", out)
    assert result.exit_code == code, what
    assert says in visible_words(out)


def test_the_document_has_its_parts_in_their_order(tmp_path: Path) -> None:
    for place, name in enumerate(("sata", "nvme")):
        path = tmp_path / "experiment" / "runs" / f"9-download--{name}"
        write_comparable(path, name, 1, 20 + place, 2, scenario="download", saturator=None)
    out = signed_off(tmp_path, "--question", "May the shop move?", "--signer", "A. Bell", ratio=1.5)
    words = visible_words(out)
    wanted = [
        "Sign-off: nvme against sata",
        "FAIL May the shop move? nvme breaks 1 of 3 limits.",
        "What was compared, and on what evidence",
        "The limits, and what was found",
        "Of 1,000 requests, one took longer than",
        "What this document does not claim",
        "Signed",
        "A. Bell",
        "The details The gates",
        "Each figure is the geometric mean",
        "Candidate against baseline",
        "Every run",
        "What was run",
        "A: sata 4 1, 2, 3, 4 6,000 zfs-send 2026-11-21 04:00",
        "ABBAABBA",
        "On what and by what",
        "programs",
        "What differs between the two",
        "Control experiment: download",
        "Control experiment: the generator's lag",
        "The runs",
        "Limits of the evidence",
        "the least judged side has 4 runs",
        "The evidence",
        "MANIFEST has the sum of every file of this document",
    ]
    places = [words.replace("&#39;", "'").find(part) for part in wanted]
    assert -1 not in places, wanted[places.index(-1)]
    assert places == sorted(places)
    assert set(figures_in(page_of(out))) == {"effects", "repeats"}
    data = json.loads((out / "signoff.json").read_text())
    assert list(data) == [
        *("format", "question", "made_at", "signers", "signed", "same", "comparison", "raw_bytes")
    ]
    listed = [line[66:] for line in (out / "SHA256SUMS").read_text().splitlines()]
    assert ["gates.yml", "signoff.json", *data["raw_bytes"]] == listed
    assert all((out / name).stat().st_size == size for name, size in data["raw_bytes"].items())
    assert (data["question"], data["signers"]) == ("May the shop move?", ["A. Bell"])


def test_without_a_download_the_document_says_what_that_costs(tmp_path: Path) -> None:
    assert "The control experiment (download) was not run on both sides" in visible_words(
        signed_off(tmp_path)
    )


SIGNERS = [
    ("two lines though nobody is named", "", 2, "first"),
    ("a line each", "abc", 3, "first"),
    ("too many for the first page sign on the last", "abcdef", 6, "last"),
]


@pytest.mark.parametrize(("what", "names", "lines", "page"), SIGNERS, ids=[row[0] for row in SIGNERS])
def test_lines_to_sign_on(tmp_path: Path, what: str, names: str, lines: int, page: str) -> None:
    text = page_of(signed_off(tmp_path, *(part for name in names for part in ("--signer", name))))
    assert text.count("</p><p></p><p></p>") == lines, what
    first, last = text.split('id="details"')
    assert ('class="lines"' in first, 'class="lines"' in last) == (page == "first", page == "last")
    assert ("Signed on the last page by 6 people." in first) == (page == "last")


USAGE = [
    ("no gates", ["e", "--out", "x"], "Missing option '--gates'"),
    ("no place", ["e", "--gates", "limits.yml"], "Missing option '--out'"),
    ("no such gates", ["e", "--gates", "none.yml", "--out", "x"], "none.yml"),
    ("three sides", ["e", "e", "e", "--gates", "limits.yml", "--out", "x"], "two sides at most"),
    ("no such runs", ["none", "none", "--gates", "limits.yml", "--out", "x"], "does not exist"),
    ("one side", ["e", "--gates", "limits.yml", "--out", "x"], "is one side"),
    (
        "wrong gates",
        ["e", *BACKENDS, "--gates", "e/wrong.yml", "--out", "x"],
        "e/wrong.yml:1: gates: is missing",
    ),
    ("no such key", ["e", *BACKENDS, "--gates", "limits.yml", "--out", "x", "--key", "none"], "none"),
]


@pytest.mark.parametrize(("what", "arguments", "says"), USAGE, ids=[row[0] for row in USAGE])
def test_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_both(Path("e"), repeats=1)
    write_gates(Path())
    Path("e/wrong.yml").write_text("confidence: 0.9\n")
    result = sign_off(*arguments)
    assert result.exit_code == 2, what
    assert says in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e", "limits.yml"]


def test_hostile_names_are_text(tmp_path: Path) -> None:
    sides = write_hostile_sides(tmp_path)
    out = tmp_path / "signed"
    limits = write_gates(tmp_path, json.dumps({"gates": [{"scenario": HOSTILE[3], "at_most_ratio": 1.1}]}))
    attack = "<script>window.owned=1</script>"
    result = sign_off(*sides, "--gates", limits, "--out", out, "--question", attack, "--signer", attack)
    assert result.exit_code == 3, result.output
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", result.stdout)
    text = page_of(out)
    visible = text[: text.index('<script type="application/json"')]
    for each in ("<script>window", "<img src=x", "<b onmouseover", '<a href="java'):
        assert each not in visible


def test_json_is_what_is_written(tmp_path: Path) -> None:
    write_both(tmp_path / "experiment")
    result = sign_off_in(tmp_path, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == json.loads((tmp_path / "signed" / "signoff.json").read_text())
