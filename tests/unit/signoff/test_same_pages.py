"""`plimsoll signoff --same`: a comparison of pages as evidence."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.comparable import runs_of, sign_off, sign_off_in, visible_words, write_both
from tests.support.rundir import change

SITES = {"sata": "http://10.0.0.5", "nvme": "http://10.0.0.6:8080"}
LOG = {"sha256": "ab" * 32, "lines": 3, "first": None, "last": None}


def site(name: str) -> dict[str, Any]:
    return {"url": SITES[name], "connect_to": None, "addresses": [f"{SITES[name][7:].split(':')[0]}:80"]}


def same_json(**keys: Any) -> dict[str, Any]:
    return {
        "format": 1,
        "status": "complete",
        "reason": None,
        "verdict": "same",
        "says": "1200 of 1200 pages are the same",
        "started_at": "2026-11-20T18:00:00.000000Z",
        "ended_at": "2026-11-20T18:20:00.000000Z",
        "baseline": site("sata"),
        "candidate": site("nvme"),
        "contents": [LOG],
        "settings": {"include": [], "exclude": [], "vhost": [], "ignore": [], "limit": 0, "sample": 1},
        "chosen": {"requests": 9000, "pages": 1200, "left_out": {"method": 4}},
        "pages": pages(),
        "shown": [],
    } | keys


def pages(**counts: int) -> dict[str, int]:
    kinds = {"same_2xx": 1100, "different": 0, "not_compared": 0, "unseen": 0} | counts
    not_same = kinds["different"] + kinds["not_compared"] + kinds["unseen"]
    return {"total": 1200, "same": 1200 - not_same} | kinds


def different(**more: str) -> dict[str, Any]:
    page = {"path": "/wp-content/uploads/a.png", "outcome": "different", "kind": "status", "looks": 2}
    page |= {"baseline": "200", "candidate": "404"} | more
    return {
        "verdict": "different",
        "says": "1 of 1200 pages differ",
        "pages": pages(different=1),
        "shown": [page],
    }


def write_sides(folder: Path) -> None:
    """Write runs that loaded the two sites, by one log."""
    write_both(folder / "experiment", 0.5)
    for name, url in SITES.items():
        for path in runs_of(folder / "experiment", name):
            target = {"url": url, "connect_to": None, "addresses": site(name)["addresses"]}
            change(path, target=target, load={"digest": "d", "settings": {"logs": [LOG]}})


def written(folder: Path, result: dict[str, Any]) -> Path:
    path = folder / "same"
    path.mkdir()
    (path / "same.json").write_text(json.dumps(result))
    (path / "pages.jsonl").write_text("")
    return path


VERDICTS: list[tuple[str, dict[str, Any], int, str]] = [
    ("the same pages pass", {}, 0, "1,200 of 1,200 pages are the same on both sides"),
    (
        "a missing upload is named, and breaks the gates",
        different(),
        1,
        "1 of 1,200 pages are not the same on nvme as on sata: /wp-content/uploads/a.png (status).",
    ),
    (
        "also where the comparison was interrupted",
        different() | {"status": "interrupted"},
        1,
        "/wp-content/uploads/a.png",
    ),
    (
        "an interrupted comparison decides nothing",
        {
            "status": "interrupted",
            "verdict": "inconclusive",
            "says": "9 of 1200 pages were seen: interrupted",
        },
        3,
        "was interrupted: 9 of 1200 pages",
    ),
    (
        "nor one that was killed",
        {"status": "running", "verdict": "inconclusive", "ended_at": None},
        3,
        "killed",
    ),
    (
        "nor one that found nothing to compare",
        {"verdict": "inconclusive", "says": "not one page has a status of 200 to 299"},
        3,
        "failed: not one page",
    ),
    (
        "nor one whose counts contradict its verdict",
        {"pages": pages(different=2)},
        1,
        "2 of 1,200 pages are not the same",
    ),
    (
        "another candidate was compared",
        {"candidate": {"url": "http://10.0.0.7", "connect_to": None, "addresses": ["10.0.0.7:80"]}},
        3,
        "compared with http://10.0.0.7, and runs of nvme loaded http://10.0.0.6:8080",
    ),
    (
        "the same name at another address",
        {"candidate": site("nvme") | {"connect_to": "10.9.9.9:80", "addresses": ["10.9.9.9:80"]}},
        3,
        "at 10.9.9.9:80",
    ),
    (
        "the sides are swapped",
        {"baseline": site("nvme"), "candidate": site("sata")},
        3,
        "runs of nvme loaded",
    ),
    ("another log", {"contents": [LOG | {"sha256": "cd" * 32}]}, 3, "of another log"),
    (
        "one of last month",
        {"started_at": "2026-10-01T00:00:00Z", "ended_at": "2026-10-01T01:00:00Z"},
        3,
        "51 days away from the runs",
    ),
    (
        "a sample passes, and says so",
        {"settings": {"sample": 0.1, "ignore": ["cached at .*"]}},
        0,
        "Not all was compared of the pages: --ignore cached at .*, --sample 0.1.",
    ),
    (
        "a page that could not be compared is no secret",
        {"pages": pages(not_compared=3)},
        0,
        "3 pages of 1,200 could not be compared",
    ),
    (
        "what a site says is only text",
        different(baseline="<script>alert(1)</script>\u202e"),
        1,
        "&lt;script&gt;alert(1)",
    ),
]


@pytest.mark.parametrize(("what", "keys", "code", "says"), VERDICTS, ids=[row[0] for row in VERDICTS])
def test_verdicts(tmp_path: Path, what: str, keys: dict[str, Any], code: int, says: str) -> None:
    out, same = tmp_path / "signed", written(tmp_path, same_json(**keys))
    write_sides(tmp_path)
    result = sign_off_in(tmp_path, "--same", same)
    assert result.exit_code == code, (what, result.output)
    assert says in visible_words(out)
    kept = json.loads((out / "signoff.json").read_text())["same"]
    assert kept["pages"]["total"] == 1200
    assert kept["folder"] == str(same)


def test_its_files_have_sums_and_later_ones_are_found(tmp_path: Path) -> None:
    out, same = tmp_path / "signed", written(tmp_path, same_json())
    write_sides(tmp_path)
    assert sign_off_in(tmp_path, "--same", same).exit_code == 0
    sums = (out / "SHA256SUMS").read_text()
    assert "  ../same/same.json\n" in sums
    assert "  ../same/pages.jsonl\n" in sums
    assert sign_off("verify", out).exit_code == 0
    (same / "added").write_text("")
    (same / "same.json").write_text(json.dumps(same_json(says="other")))
    checked = sign_off("verify", out)
    assert checked.exit_code == 1
    assert "WRONG: ../same/same.json: was changed" in checked.output
    assert "WRONG: ../same/added: was added" in checked.output


def test_without_it_the_document_says_what_nobody_looked_at(tmp_path: Path) -> None:
    out = tmp_path / "signed"
    write_sides(tmp_path)
    assert sign_off_in(tmp_path).exit_code == 0
    assert "was not looked at page by page (plimsoll same)" in visible_words(out)
    assert json.loads((out / "signoff.json").read_text())["same"] is None


WRONG: list[tuple[str, object, str]] = [
    ("no result in the folder", None, "same.json: is not there: give the folder that plimsoll same wrote"),
    ("no JSON", "{", "is not JSON"),
    ("a list", "[]", "same.json: the file"),
    ("an impossible count", same_json(pages=pages(different=-1)), "same.json: pages.different"),
    ("another format", same_json(format=2), "same.json: format"),
    ("a time without zone", same_json(started_at="2026-11-20T18:00:00"), "same.json: started_at"),
]


@pytest.mark.parametrize(("what", "content", "says"), WRONG, ids=[row[0] for row in WRONG])
def test_what_is_no_result_is_refused(tmp_path: Path, what: str, content: object, says: str) -> None:
    same = written(tmp_path, same_json())
    (same / "same.json").unlink()
    if content is not None:
        text = content if isinstance(content, str) else json.dumps(content)
        (same / "same.json").write_text(text)
    write_sides(tmp_path)
    result = sign_off_in(tmp_path, "--same", same)
    assert result.exit_code == 2, what
    assert says in result.output
    assert not (tmp_path / "signed").exists()
