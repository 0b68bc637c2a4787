"""What the commands say that judge runs, and those that bring runs in, take them out or put them together."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from lxml import etree

from plimsoll import __version__
from plimsoll.cli import main
from tests.support.comparable import GATES, runs_of, separated, write_both, write_night
from tests.support.experiment import write_experiment
from tests.support.golden import Row, Said, check_golden, json_text, page_text, rounded, settle, transcript
from tests.support.programs import ROOT
from tests.support.rundir import change, run_facts, traffic, write_instance, write_run

SIDES = "--baseline sata --candidate nvme"
RATIOS = {"passes": 1.0, "fails": 1.5, "undecided": 1.1}
HISTORY = "--history history.sqlite --stale-after 100000d"
# The backends' p99.9 by night: nvme is half again as slow from the tenth on.
NIGHTS = [
    {"nvme": 50 * wobble * (1.5 if number > 9 else 1), "sata": 90 * wobble}
    for number, wobble in enumerate([1, 1.02, 0.99, 1.01, 0.98, 1.03, 0.97, 1, 1.02, 0.99, 1.01, 0.98, 1])
]
LATE: dict[str, Any] = {
    "generator_limited": True,
    "generator_limited_reason": "It was late by 80 ms in the median.",
}
ROUTES = ["page", "image", "css-js", "admin-ajax"]
HALF = {"of": 2, "sequence": ["0", "1/2", "1"], "planned": [90, 91]}
SENT = {"halves": (90, 91), "killed": (90, 40)}
K6, GRINDER, LOCUST = (f"{{fixtures}}/{name}" for name in ("k6", "grinder", "locust"))

REPORT: list[Row] = [
    ("ten minutes of a site with a stall in them", "plimsoll report {busy} --out busy.html"),
    ("its page", "show busy.html"),
    ("two backends, in turns, before, during and after a send", "plimsoll report experiment --out two.html"),
    ("its page", "show two.html"),
    ("a run that was interrupted, by a generator that was late", "plimsoll report odd --out odd.html"),
    ("its page", "show odd.html"),
    ("two runs of each backend", "plimsoll report few --out few.html"),
]
REPORT_JSON: list[Row] = [("the same busy site", "plimsoll report {busy} --out busy.html --json")]
FILES = "--html page.html --markdown said.md --junit said.xml"
COMPARE: list[Row] = [
    ("alike sides pass", f"plimsoll compare passes {SIDES} {FILES}"),
    ("the page of a PASS", "show page.html"),
    ("the limits of the example", f"plimsoll compare passes {SIDES} --gates examples/gates.yml"),
    ("a slower candidate fails", f"plimsoll compare fails {SIDES} {FILES}"),
    ("the page of a FAIL", "show page.html"),
    ("its Markdown", "show said.md"),
    ("its JUnit", "show said.xml"),
    ("near the limit nobody can tell", f"plimsoll compare undecided {SIDES} {FILES}"),
    ("the page of what is INCONCLUSIVE", "show page.html"),
    ("its Markdown", "show said.md"),
    ("its JUnit", "show said.xml"),
    ("runs that took no turns", "plimsoll compare before after"),
    ("a run whose generator was late", f"plimsoll compare late {SIDES}"),
    (
        "before, during and after a send",
        "plimsoll compare experiment --baseline nvme-mirror --candidate slow-disk",
    ),
]
COMPARE_JSON: list[Row] = [("a slower candidate", f"plimsoll compare fails {SIDES} --json")]
SIGNOFF: list[Row] = [
    (
        "alike sides, and two who sign",
        f"plimsoll signoff passes {SIDES} --gates limits.yml --out signed --signer 'A. Bell'"
        " --signer 'C. Day' --markdown said.md --junit said.xml",
    ),
    ("the document", "show signed/signoff.html"),
    ("its Markdown", "show said.md"),
    ("its JUnit", "show said.xml"),
    ("is it as it was written?", "plimsoll signoff verify signed"),
    (
        "a slower candidate, and a question",
        f"plimsoll signoff fails {SIDES} --gates limits.yml --out broken --question 'May we buy it?'",
    ),
    ("the document", "show broken/signoff.html"),
    (
        "near the limit nobody can tell",
        f"plimsoll signoff undecided {SIDES} --gates limits.yml --out neither",
    ),
    ("the document", "show neither/signoff.html"),
    ("a run whose generator was late", f"plimsoll signoff late {SIDES} --gates limits.yml --out late-signed"),
    ("the document", "show late-signed/signoff.html"),
    ("a folder that is there", f"plimsoll signoff passes {SIDES} --gates limits.yml --out signed"),
]
SIGNOFF_JSON: list[Row] = [
    ("alike sides", f"plimsoll signoff passes {SIDES} --gates limits.yml --out again --json")
]
REGRESS: list[Row] = [
    ("nights to begin with", f"plimsoll regress {HISTORY} --new {{first}} --set-baseline latest"),
    ("four more, two of them worse", f"plimsoll regress {HISTORY} {{next}}"),
    ("one more, with all that can be written", f"plimsoll regress {HISTORY} {{last}} {FILES}"),
    ("its page", "show page.html"),
    ("its Markdown", "show said.md"),
    ("its JUnit", "show said.xml"),
    ("the same as JSON", f"plimsoll regress {HISTORY} --json"),
    ("what old nights could go", f"plimsoll regress {HISTORY} --keep-raw-days 1 --dry-run"),
    (
        "the change is accepted",
        f"plimsoll regress {HISTORY} --accept --by me --note 'the new kernel costs that'",
    ),
    ("and nothing is worse any more", f"plimsoll regress {HISTORY}"),
]
EXPORT: list[Row] = [
    row
    for to in ("csv", "hdr", "prometheus")
    for row in (
        (f"as {to}", f"plimsoll export short --to {to} --out short.{to}"),
        ("what it holds", f"show short.{to}"),
        ("its description", f"plimsoll export short --to {to} --out short.{to} --json"),
    )
] + [
    ("a table", "plimsoll export short --to parquet --out short.parquet"),
    ("a run that did not come to its end", "plimsoll export odd --to csv --out odd.csv"),
    ("to standard output", "plimsoll export odd --to prometheus --out -"),
]
MERGE: list[Row] = [
    ("two halves of a run", "plimsoll merge halves --out whole"),
    ("what it became", "plimsoll report whole"),
    ("the same as JSON", "plimsoll merge halves --out whole-too --json"),
    ("one half", "plimsoll merge halves/0 --out half"),
    ("a half that was killed", "plimsoll merge killed --out part"),
    ("what it became", "plimsoll report part"),
]
IMPORT: list[Row] = [
    ("visitors of k6", f"plimsoll import k6 {K6}/visitors.json --target http://site.example"),
    ("what was imported", "plimsoll report results/latest"),
    ("its browser, as JSON", f"plimsoll import k6 {K6}/browser.json --json"),
    ("another's script, of its CSV", f"plimsoll import k6 {K6}/foreign.csv"),
    (
        "two workers of The Grinder",
        f"plimsoll import grinder {GRINDER}/load-0-data.log {GRINDER}/load-1-data.log",
    ),
    ("what was imported", "plimsoll report results/latest --out grinder.html"),
    ("its page", "show grinder.html"),
    ("one worker, as JSON", f"plimsoll import grinder {GRINDER}/plain-0-data.log --json"),
    ("Locust's own tables", f"plimsoll import locust {LOCUST}/load"),
    ("the same as JSON", f"plimsoll import locust {LOCUST}/load --json"),
    ("what is nothing of k6", f"plimsoll import k6 {LOCUST}/load_stats.csv"),
]
ROWS = {
    "report.txt": REPORT,
    "report-json.txt": REPORT_JSON,
    "compare.txt": COMPARE,
    "compare-json.txt": COMPARE_JSON,
    "signoff.txt": SIGNOFF,
    "signoff-json.txt": SIGNOFF_JSON,
    "regress.txt": REGRESS,
    "export.txt": EXPORT,
    "merge.txt": MERGE,
    "import.txt": IMPORT,
}
ANOTHER_EACH_TIME = {
    re.escape(__version__): "VERSION",
    r"\b[0-9a-f]{64}\b": "SUM",
    r"Made 20\d\d-\d\d-\d\d \d\d:\d\d UTC": "Made 2026-11-26 12:00 UTC",
    r"\bHISTFAAA\S+": "HISTFAAA…",  # compressed: its bytes are another zlib's
    r"(Z-k6)-\d+\b": r"\1",  # the second of one second
    r", 20\d\d(\\?)-\d\d\\?-\d\d by me": r", 2026\1-11\1-26 by me",
    r"^20\d\d-\d\d-\d\d( \| baseline set to)": r"2026-11-26\1",
    r'"at": "[^"]*"': '"at": "2026-11-26T12:00:00Z"',
    r'"made_at": "[^"]*"': '"made_at": "2026-11-26T12:00:00Z"',
}


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory, busy_run: Path) -> Iterator[dict[str, str]]:
    """Go to a folder that has the runs, and return what stands for {names} in the rows."""
    with pytest.MonkeyPatch.context() as patch:
        settle(tmp_path_factory.mktemp("judging"), patch)
        patch.setenv("LOGNAME", "me")
        _write_runs(Path())
        nights = [write_night(Path("nights"), *night) for night in enumerate(NIGHTS)]
        yield {
            "busy": str(busy_run),
            "fixtures": str(ROOT / "tests" / "fixtures"),
            "first": " ".join(map(str, nights[:8])),
            "next": " ".join(map(str, nights[8:-1])),
            "last": str(nights[-1]),
        }


def _write_runs(folder: Path) -> None:
    for name, ratio in RATIOS.items():
        write_both(folder / name, ratio)
    write_both(folder / "late")
    change(runs_of(folder / "late")[0], **LATE)
    for run in runs_of(folder / "passes")[-1:]:
        change(run, started_at="2026-11-28T12:00:00.000000Z", ended_at="2026-11-28T12:02:00.000000Z")
    separated(folder, repeats=3)
    (folder / "limits.yml").write_text(f"{GATES}  - {{scenario: replay, metric: p50, at_most_ratio: 1.25}}\n")
    write_experiment(folder / "few", repeats=2)
    runs = write_experiment(folder / "experiment")
    for run in runs:
        change(run, host=run_facts()["host"])
    for run in runs[:2]:  # as if another disk were looked at, and seldom
        head, *samples = (run / "host.csv").read_text().splitlines()
        samples = [re.sub(r"(\d),90,([1-9])", r"\1,90,\g<2>0", sample) for sample in samples[::4]]
        (run / "host.csv").write_text("\n".join([head, *samples, ""]))
    write_run(
        folder / "short", traffic(20, 5), routes=ROUTES, summary={"requests": {"total": 94, "sent": 94}}
    )
    write_run(folder / "odd", traffic(60, 20), routes=ROUTES, status="interrupted", reason="a signal", **LATE)
    ends: dict[str, Any] = {"halves": {}, "killed": {"status": "running"}}
    for name, facts in ends.items():
        for index in (0, 1):
            half = HALF | {"segment": ("0:1/2", "1/2:1")[index]}
            write_instance(
                folder / name / str(index), index, SENT[name][index], shard=half, **(facts if index else {})
            )


@pytest.mark.parametrize("name", ROWS)
def test_commands(words: dict[str, str], name: str) -> None:
    rows = ROWS[name]
    said = [_said(line.format(**words).split(" ", 1)) for _, line in rows]
    patterns = {re.escape(words["busy"]): "busy"} | ANOTHER_EACH_TIME
    check_golden(name, transcript(rows, said, patterns))


def _said(line: list[str]) -> Said:
    program, rest = line
    if program == "show":
        return 0, _shown(Path(rest)), ""
    done = CliRunner().invoke(main, shlex.split(rest), prog_name=program)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    out = json_text(rounded(json.loads(done.stdout), 9)) if "--json" in rest else done.stdout
    return done.exit_code, _named(out), done.stderr


def _named(text: str) -> str:
    """Return a text in which a night has its day alone: a time is what transcripts leave out."""
    return re.sub(r"(nightly\\?-2026\d{4})T020000Z", r"\1", text)


def _shown(path: Path) -> str:
    text = _named(path.read_text(encoding="utf-8"))
    if path.suffix == ".html":
        return page_text(text)
    if path.suffix == ".xml":
        return etree.tostring(etree.fromstring(text.encode()), encoding="unicode", pretty_print=True)
    return text
