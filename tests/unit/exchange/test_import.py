"""`plimsoll import k6`: real outputs of k6, whole, cut off and broken."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from plimsoll.analysis.evidence.measure import measure_figures
from plimsoll.analysis.exchange.k6 import import_k6
from plimsoll.cli import main
from plimsoll.rundir.read import RunDirectory
from tests.support.programs import FIXTURES
from tests.support.rundir import load_records

K6 = FIXTURES / "k6"
FOREIGN, VISITORS, BROWSER = K6 / "foreign.json", K6 / "visitors.json", K6 / "browser.json"


def points(path: Path, metric: str) -> int:
    """How many samples of `metric` k6 wrote."""
    return sum(f'"metric":"{metric}","type":"Point"' in line for line in path.read_text().splitlines())


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(main, ["import", "k6", *map(str, args)])


def mortal(path: Path, *, comes_back: bool) -> Path:
    """What k6 writes of a server that answers for five seconds, is killed, and may come back."""
    lines = []
    for i in range(100):
        tags = {"name": "page", "status": "200", "expected_response": "true"}
        if i >= 50 and not (comes_back and i >= 80):
            tags = {"name": "page", "status": "0", "error_code": "1212", "error": "dial: connection refused"}
        for metric, value in (("http_reqs", 1), ("http_req_duration", 1.0), ("http_req_waiting", 0.9)):
            at = f"2026-11-22T10:00:{i // 10:02d}.{i % 10}00001Z"
            data = {"time": at, "value": value if tags["status"] == "200" else 0, "tags": tags}
            lines.append(json.dumps({"metric": metric, "type": "Point", "data": data}))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(("comes_back", "status"), [(False, "failed"), (True, "complete")])
def test_a_run_whose_target_died_is_not_complete(tmp_path: Path, comes_back: bool, status: str) -> None:
    run(mortal(tmp_path / "k6.json", comes_back=comes_back), "--out", tmp_path / "results")
    facts = json.loads((tmp_path / "results" / "latest" / "run.json").read_text())
    assert facts["status"] == status, facts["reason"]
    assert (facts["reason"] or "").startswith("the target gave no answer after 5.9 s") == (not comes_back)
    assert facts.get("load") is None, "nobody knows what shaped it"


def test_every_request_of_a_script_is_a_record(tmp_path: Path) -> None:
    imported = import_k6(FOREIGN, tmp_path, target="http://127.0.0.1:9911")
    assert imported.is_whole
    opened = RunDirectory.open(imported.directory)
    records = load_records(opened.path)
    assert len(records) == points(FOREIGN, "http_reqs") == 8
    assert opened.routes == ["page", "shop", "picture"], "never an address, never a query"
    assert [opened.error_name(number) for number in records["error"]] == ["none"] * 3 + [
        "connect_refused"
    ] + ["none"] * 3 + ["connect_refused"]
    assert records["status"].tolist() == [200, 404, 200, 0] * 2, "the order is k6's"
    assert not records["line"].any(), "without the system tag iter, nobody knows which iteration it was"
    assert (np.diff(records["due_ns"]) > 0).all()
    assert records["ttfb_us"][records["status"] > 0].min() > 0
    assert opened.facts.target and opened.facts.target.url == "http://127.0.0.1:9911"
    assert "secret" not in "".join(path.read_text() for path in imported.directory.glob("*.json*"))
    summary = json.loads((imported.directory / "summary.json").read_text())
    assert summary["measures"]["basket"]["max"] == 12.5
    assert "size" not in summary["measures"]
    assert measure_figures(opened).requests == 8
    events = (imported.directory / "events.jsonl").read_text()
    assert events.count('"check_failed"') == 2


def test_csv_says_the_same_as_json(tmp_path: Path) -> None:
    by_json, by_csv = (
        load_records(import_k6(path, tmp_path / path.suffix[1:]).directory)
        for path in (FOREIGN, K6 / "foreign.csv")
    )
    for column in ("status", "line", "client", "route", "error", "flags", "total_us", "ttfb_us"):
        assert by_json[column].tolist() == by_csv[column].tolist(), column
    assert np.abs(by_json["due_ns"] - by_csv["due_ns"]).max() < 1000, "its values have six decimals"


def test_our_own_script_says_more(tmp_path: Path) -> None:
    imported = import_k6(VISITORS, tmp_path)
    opened = RunDirectory.open(imported.directory)
    records = load_records(opened.path)
    assert len(records) == points(VISITORS, "http_reqs")
    assert opened.facts.loop == "open"
    assert (records["flags"] & 8 > 0).sum() == 4, "looking for pages is warm-up"
    assert (records["lag_us"] > 0).sum() <= points(VISITORS, "plimsoll_lag"), (
        "one request a visit may be late"
    )
    assert records["bytes"].min() > 0
    assert set(opened.routes) <= {"discovery", "front page", "page", "image", "css-js", "font", "other file"}


def test_a_browser_has_steps_and_web_vitals(tmp_path: Path) -> None:
    imported = import_k6(BROWSER, tmp_path)
    opened = RunDirectory.open(imported.directory)
    summary = json.loads((imported.directory / "summary.json").read_text())
    cached = summary["requests"]["skipped"].get("from_cache", 0)
    assert opened.requests.count + cached == points(BROWSER, "browser_http_req_duration")
    assert {"front page", "front page: files", "log in"} <= set(opened.routes)
    assert summary["measures"]["lcp: front page"]["unit"] == "ms"
    assert summary["measures"]["cls: front page"]["unit"] == "score"


def test_a_killed_k6_is_an_interrupted_run(tmp_path: Path) -> None:
    cut = tmp_path / "cut.json"
    cut.write_bytes(FOREIGN.read_bytes()[:-100])
    result = run(cut, "--out", tmp_path / "results")
    assert result.exit_code == 1
    opened = RunDirectory.open(tmp_path / "results" / "latest")
    assert opened.status == "interrupted"
    assert opened.facts.reason and "is cut off" in opened.facts.reason


@pytest.mark.parametrize("share", [0.3, 0.99])
def test_gzip_is_read_and_so_is_half_of_it(tmp_path: Path, share: float) -> None:
    packed = gzip.compress(FOREIGN.read_bytes(), mtime=0)
    whole, cut = tmp_path / "whole.json.gz", tmp_path / "cut.json.gz"
    whole.write_bytes(packed)
    cut.write_bytes(packed[: int(len(packed) * share)])
    assert import_k6(whole, tmp_path / "a").requests == 8
    imported = import_k6(cut, tmp_path / "b")
    assert imported.status == "interrupted"
    assert imported.reason and "gzip" in imported.reason


def test_broken_lines_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    lines = FOREIGN.read_text().splitlines(keepends=True)
    lines.insert(3, "{oops\n")
    lines.insert(5, '{"type":"Point"}\n')
    broken = tmp_path / "broken.json"
    broken.write_text("".join(lines))
    result = run(broken, "--out", tmp_path / "results")
    assert result.exit_code == 1
    assert "line 4: is not JSON" in result.output
    assert "line 6: is not a sample of k6" in result.output
    assert RunDirectory.open(tmp_path / "results" / "latest").requests.count == 8


def test_nul_bytes_in_csv_are_no_end(tmp_path: Path) -> None:
    lines = (K6 / "foreign.csv").read_bytes().splitlines(keepends=True)
    lines.insert(2, b"\0\0,1,\xff\n")
    lines.insert(2, b'"' + b"x" * 200_000 + b'"\n')
    broken = tmp_path / "broken.csv"
    broken.write_bytes(b"".join(lines))
    imported = import_k6(broken, tmp_path / "results")
    assert imported.broken_lines >= 1
    assert imported.requests == 8


UNUSABLE = [
    ("an empty file", b"", "is empty"),
    (
        "an access log",
        b'192.0.2.1 - - [20/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1\n',
        "line 1: is not JSON",
    ),
    ("k6's summary", b'{\n "metrics": {}\n}\n', "line 1: is not JSON"),
    ("definitions only", FOREIGN.read_bytes().splitlines(keepends=True)[0], "holds no sample of k6"),
    ("a CSV of another program", b"a,b\n1,2\n", "line 1: is not JSON"),
]


@pytest.mark.parametrize(("why", "content", "says"), UNUSABLE)
def test_a_file_without_samples_is_refused(tmp_path: Path, why: str, content: bytes, says: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    result = run(path, "--out", tmp_path / "results")
    assert result.exit_code == 2, why
    assert says in result.output
    assert not (tmp_path / "results").exists(), "nothing is left of it"


def test_missing_and_repeated_files_are_named_together(tmp_path: Path) -> None:
    result = run(FOREIGN, FOREIGN, tmp_path / "nothing.json", "--out", tmp_path / "results")
    assert result.exit_code == 2
    assert "is given twice" in result.output and "there is no such file" in result.output
    assert not (tmp_path / "results").exists()


def test_json_lists_what_was_imported(tmp_path: Path) -> None:
    result = run(FOREIGN, VISITORS, "--out", tmp_path / "results", "--json", "--scenario", "shop")
    assert result.exit_code == 0
    runs = json.loads(result.output)["runs"]
    assert [one["requests"] for one in runs] == [8, points(VISITORS, "http_reqs")]
    assert all(one["directory"].rpartition("Z-")[2].startswith("shop") for one in runs)


def test_times_of_whole_seconds_are_told(tmp_path: Path) -> None:
    rows = (K6 / "foreign.csv").read_text().splitlines()
    coarse = tmp_path / "coarse.csv"
    whole = [row.split(",", 2) for row in rows[1:]]
    coarse.write_text("\n".join([rows[0], *(f"{name},1795228600,{rest}" for name, _, rest in whole)]) + "\n")
    imported = import_k6(coarse, tmp_path / "results")
    assert imported.requests == 8
    assert any("K6_CSV_TIME_FORMAT" in note for note in imported.notes)
