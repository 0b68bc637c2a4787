"""`compare`, `signoff`, `report` and `regress` say the same of the same runs: which finding is said where."""

import ast
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from plimsoll.analysis.evidence.finding import FindingKind
from plimsoll.cli import main
from tests.support.comparable import (
    BACKENDS,
    compare_json,
    finding_names,
    gated,
    runs_of,
    sign_off,
    visible_words,
    write_both,
    write_comparable,
    write_gates,
)
from tests.support.rundir import change, change_records, change_summary

ANALYSIS = Path(main.callback.__code__.co_filename if main.callback else "").parent / "analysis"
# Of each command: where it begins, and the packages that it is made of.
ROOTS = {
    "compare": (["compare.comparison.compare", "compare.weeks.compare_weeks"], "compare evidence"),
    "signoff": (["signoff.document.write_signoff"], "signoff compare evidence"),
    "report": (["report.making.make_report"], "report evidence"),
    "regress": (
        ["regress.intake.add_runs", "regress.tonight.judge_last_night"],
        "regress compare evidence",
    ),
}
SAME = ("other-pages", "pages-unknown", "pages-elsewhere", "pages-partly")
LOOKS = (
    *("another-look", "look-not-remembered", "other-gates", "other-candidates"),
    *("other-plan", "plan-extended"),
)
LOGS = ("unlike-logs", "cut-tail", "fewer-requests")
EXCEPTIONS: dict[str, dict[tuple[str, ...], str]] = {
    "compare": {SAME: "the result of plimsoll same is given to signoff"},
    "signoff": {LOGS: "it refuses imported access logs"},
    "report": {
        SAME: "the result of plimsoll same is given to signoff",
        LOOKS: "it gives no verdict that a later look could change",
        (
            *("no-gate", "not-interleaved", "censored", "rare-stalls", "slower-routes", "odd-answers"),
            *("lenient-gate", "other-spelling"),
        ): "of gates, and of the two sides that are chosen",
        ("generator-late",): "it draws figures as measured, so that each late run is limited",
        ("few-runs", "unequal-runs", "not-run"): "it shows what there is: in its own words, as a doubt",
        ("order", "block-unfinished"): "its answer says of runs that did not alternate that it is not sure",
    },
    "regress": {
        SAME: "the result of plimsoll same is given to signoff",
        LOOKS: "its level is for all nights together",
        LOGS: "days of logs are held against reference weeks, by rules of their own",
        (
            "no-gate",
            "not-interleaved",
            "censored",
            "rare-stalls",
            "odd-answers",
            "lenient-gate",
            "other-spelling",
        ): "nights are its unit, not runs",
        ("slower-routes",): "each kind of requests is a series: one that became slower is news, and red",
        ("generator-late",): "a night that was sent late enters no series",
        (
            "few-runs",
            "unequal-runs",
            "not-run",
            "unfinished",
            "unreadable",
        ): "the night is not judged, for this",
        ("failed-measures",): "the history keeps no tries; where half of them fail, there is no figure",
        ("order", "block-unfinished", "clock"): "nights follow one another; one of the future is not judged",
        ("control-differs",): "the control experiment is a series of its own",
        ("emulated",): "nights of one backend are held against each other",
    },
}
DROPPED = {"evidence.sides.find_order"}  # by the report, which asks it only whether runs alternated


class Code:
    """All functions, classes and tables of the analysis: what each refers to, and which kinds it names."""

    def __init__(self) -> None:
        self.refers: dict[str, set[str]] = {}
        self.kinds: dict[str, set[str]] = {}
        self._methods: dict[str, set[str]] = defaultdict(set)
        trees = {
            ".".join(path.relative_to(ANALYSIS).with_suffix("").parts): ast.parse(path.read_text())
            for path in ANALYSIS.rglob("*.py")
        }
        for module, tree in trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    for each in node.body:
                        if isinstance(each, ast.FunctionDef):
                            self._methods[each.name].add(f"{module}.{node.name}")
        for module, tree in trees.items():
            self._read(module, tree)

    def _read(self, module: str, tree: ast.Module) -> None:
        imported = {
            alias.asname or alias.name: f"{node.module.removeprefix('plimsoll.analysis.')}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("plimsoll.analysis.")
            for alias in node.names
            if node.module
        }
        own = {name: node for node in tree.body for name in _names(node)}
        for name, node in own.items():
            refers, kinds = set[str](), set[str]()
            compared = {
                id(part)
                for each in ast.walk(node)
                if isinstance(each, ast.Compare)
                for part in ast.walk(each)
            }
            for each in ast.walk(node):
                if isinstance(each, ast.Name) and each.id in own:
                    refers.add(f"{module}.{each.id}")
                elif isinstance(each, ast.Name) and each.id in imported:
                    refers.add(imported[each.id])
                elif isinstance(each, ast.Attribute):
                    refers |= self._methods[each.attr]
                    if (
                        isinstance(each.value, ast.Name)
                        and each.value.id == "FindingKind"
                        and id(each) not in compared
                    ):
                        kinds.add(each.attr)
            self.refers[f"{module}.{name}"], self.kinds[f"{module}.{name}"] = refers, kinds

    def reachable_kinds(self, roots: list[str], packages: str) -> set[str]:
        """Return the kinds that are named by what may be called from `roots`."""
        seen, left = set[str](), list(roots)
        dropped = DROPPED if "compare" not in packages else set[str]()
        while left:
            at = left.pop()
            if at not in seen | dropped and at in self.refers and at.partition(".")[0] in packages.split():
                seen.add(at)
                left += self.refers[at]
        labels = {kind.name: kind.label for kind in FindingKind}
        return {labels[name] for at in seen for name in self.kinds[at] if name in labels}


def _names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from (each.id for each in ast.walk(target) if isinstance(each, ast.Name))


def test_each_kind_is_said_by_each_command_or_there_is_a_reason() -> None:
    code, every = Code(), {kind.label for kind in FindingKind}
    for command, (roots, packages) in ROOTS.items():
        unsaid = {name for names in EXCEPTIONS[command] for name in names}
        assert every - code.reachable_kinds(roots, packages) <= unsaid, command


def other_speed(folder: Path) -> None:
    for path in runs_of(folder):
        change(path, speed="2")


def another_server(folder: Path) -> None:
    for path in runs_of(folder):
        change(path, host={"hostname": "elsewhere", "cpus": 64})


def failures(folder: Path) -> None:
    for path in runs_of(folder):
        change_records(path, slice(0, 100), status=500)


def other_protocol(folder: Path) -> None:
    for path in runs_of(folder, "*"):
        change_records(path, flags=1 if "nvme" in path.name else 7)


def copied_run(folder: Path) -> None:
    one, other = runs_of(folder)[:2]
    for name in ("requests.npy", "summary.json"):
        (other / name).write_bytes((one / name).read_bytes())


def other_records(folder: Path) -> None:
    change_summary(runs_of(folder)[0], records_sha256="0" * 64)


def killed_run(folder: Path) -> None:
    change(runs_of(folder)[0], status="failed")


def fewer_requests(folder: Path) -> None:
    for path in runs_of(folder):
        write_comparable(path, "nvme", int(path.name[-1]), int(path.name[:4]) - 1, 50, count=1300)


FAULTS: list[tuple[str, Callable[[Path], object], set[str]]] = [
    ("another speed", other_speed, {"other-load"}),
    ("another generator", another_server, {"other-generator"}),
    ("failures", failures, {"more-failures"}),
    ("another protocol", other_protocol, {"other-connections"}),
    ("a copy", copied_run, {"copy"}),
    ("records that were changed", other_records, {"other-records"}),
    ("a run that failed", killed_run, {"incomplete"}),
    ("fewer requests", fewer_requests, {"unequal-requests"}),
]


@pytest.mark.parametrize(("what", "spoil", "names"), FAULTS, ids=[row[0] for row in FAULTS])
@pytest.mark.parametrize("ratio", [1.0, 1.5], ids=["would pass", "would fail"])
def test_all_commands_find_the_same(
    tmp_path: Path, what: str, spoil: Callable[[Path], object], names: set[str], ratio: float
) -> None:
    folder, limits = write_both(tmp_path / "it", ratio), gated("phase: during, at_most_ratio: 1.1")
    spoil(folder)
    compared = compare_json(folder, limits)
    assert finding_names(compared) >= names
    words = ("--gates", write_gates(tmp_path, limits), "--out", tmp_path / "signed")
    result = sign_off(folder, *BACKENDS, *words)
    signed = json.loads((tmp_path / "signed" / "signoff.json").read_text())["comparison"]
    assert result.exit_code == compared["exit"]
    for key in ("verdict", "findings", "differences"):
        assert signed[key] == compared[key], key
    page = visible_words(tmp_path / "signed")
    for finding in compared["findings"]:
        assert finding["text"] in page and page.index(finding["text"][:60]) < page.index("The gates"), finding
    made = CliRunner().invoke(main, ["report", str(folder), "--json", "--out", str(tmp_path / "report.html")])
    report: dict[str, Any] = json.loads(made.stdout)
    said = finding_names(report).union(*map(finding_names, report["runs"]))
    assert said >= finding_names(compared) - {name for each in EXCEPTIONS["report"] for name in each}
