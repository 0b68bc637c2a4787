"""What every import does: it names all files that it cannot take, and decides how the run has ended."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from plimsoll.analysis.exchange.importing import decide_status
from plimsoll.cli import main
from tests.support.programs import FIXTURES
from tests.support.recorded import GRINDER_HEADER as GRINDER
from tests.support.recorded import LOCUST_HEAD as LOCUST

FOREIGN, WORKER = FIXTURES / "k6" / "foreign.json", FIXTURES / "grinder" / "load-0.log"
DATA_LOG = WORKER.with_name("load-0-data.log")
COMMA = GRINDER.replace("Errors", "a, b, Errors, c")
ACCESS_LOG = '192.0.2.1 - - [20/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1\n'
FILES = {"grinder": "x-0-data.log", "k6": "file", "locust": "a.jsonl"}


def run(program: str, *args: str | Path) -> Result:
    return CliRunner().invoke(main, ["import", program, *map(str, args)])


UNUSABLE: list[tuple[str, str, str, str]] = [
    ("grinder", "an empty file", "", "is empty"),
    ("grinder", "an access log", ACCESS_LOG, "not a header of The Grinder"),
    ("grinder", "its other log", WORKER.read_text(), "not a header of The Grinder"),
    ("grinder", "a header alone", f"{GRINDER}\n", "holds no test"),
    (
        "grinder",
        "nothing but broken lines",
        f"{GRINDER}\nx, 0, 1, 2, 3, 4\n",
        "(x-0-data.log: line 2: its Thread is 'x')",
    ),
    ("grinder", "no start", "Thread, Run, Test, Test time, Errors\n0,0,1,1,0\n", "has no column 'Start time"),
    ("grinder", "a column twice", f"{GRINDER}, Errors\n0, 0, 1, 1, 1, 0, 0\n", "has a column twice"),
    ("grinder", "a comma in a name", f"{COMMA}\n0,0,1,1,1,0,0,0\n", "is there a comma"),
    ("k6", "an empty file", "", "is empty"),
    ("k6", "an access log", ACCESS_LOG, "line 1: is not JSON"),
    ("k6", "its summary", '{\n "metrics": {}\n}\n', "line 1: is not JSON"),
    ("k6", "definitions only", FOREIGN.read_text().splitlines(keepends=True)[0], "holds no sample of k6"),
    ("k6", "a CSV of another program", "a,b\n1,2\n", "line 1: is not JSON"),
    ("locust", "an empty file", "", "holds no request"),
    ("locust", "another JSON Lines file", '{"type":"Metric"}\n', "is not a file of the listener"),
    ("locust", "a head alone", f"{LOCUST}\n", "holds no request"),
    ("locust", "nothing but broken lines", f"{LOCUST}\nx\n", "line 2 is not a request"),
]


@pytest.mark.parametrize(
    ("program", "why", "content", "says"), UNUSABLE, ids=[f"{r[0]}: {r[1]}" for r in UNUSABLE]
)
def test_files_of_other_programs_and_without_requests_are_refused(
    tmp_path: Path, program: str, why: str, content: str, says: str
) -> None:
    path = tmp_path / FILES[program]
    path.write_text(content)
    result = run(program, path, "--out", tmp_path / "results")
    assert result.exit_code == 2, why
    assert says in result.output
    assert not (tmp_path / "results").exists(), "nothing is left of it"


@pytest.mark.parametrize(("program", "file"), [("grinder", DATA_LOG), ("k6", FOREIGN)])
def test_missing_and_repeated_files_are_named_together(tmp_path: Path, program: str, file: Path) -> None:
    result = run(program, file, file, tmp_path / "nothing", "--out", tmp_path / "results")
    assert result.exit_code == 2
    assert "is given twice" in result.output and "nothing: is not there" in result.output
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("broken", "lines", "status", "why"),
    [
        (0, 1000, "complete", "all of it was read"),
        (10, 1000, "complete", "one line in a hundred is tolerable, and mentioned"),
        (11, 1000, "failed", "what is missing may be what was slow"),
        (700, 1000, "failed", "a log most of which cannot be read is not a run"),
    ],
)
def test_how_it_ends(broken: int, lines: int, status: str, why: str) -> None:
    found, reason = decide_status(broken, lines)
    assert found == status, why
    assert reason == (f"{broken} lines of 1,000 could not be read" if broken else None)
