"""A repeatable sample of mutants: which share of them the tests kill, and whether it has fallen.

    mutants.py run FOLDER [BEFORE.csv]     writes FOLDER/mutants.csv
    mutants.py compare BEFORE.csv AFTER.csv

A mutant is known by its function, its operator, and its place among the operator's in that function, not by
its file. Those with the smallest hashes are chosen: moving a function changes nothing, adding one only its
own. Python's mutants come from Cosmic Ray's operators, Go's from tools/gomutants. Each runs in a copy of the
working tree in build/mutants, against the tests that reach its line, until one fails. The next run continues
what was interrupted, unless the working tree has changed.
"""

import csv
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import astuple, dataclass, fields, replace
from itertools import count
from math import comb
from pathlib import Path
from queue import SimpleQueue
from time import monotonic
from types import MappingProxyType
from typing import Any, TypeVar

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.provider import OperatorProvider
from coverage import CoverageData
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

# What decides figures and verdicts, and how many mutants of it. Where code moves to, name that folder too.
SEED = "plimsoll"
PYTHON = [f"plimsoll/analysis/{package}" for package in ("statistics", "compare", "evidence")]
GO = ["record", "engine", "engine/exchange"]  # in replay
PYTHON_MUTANTS, GO_MUTANTS = 200, 100

# The packages of tests/unit that reach it; the lab's reach it only through fakes that take minutes.
_PACKAGES = "compare evidence exchange golden regress report signoff statistics"
TESTS = [f"tests/unit/{package}" for package in _PACKAGES.split()]
MOST_TESTS_S = 25.0  # of one mutant's tests, the quickest first

PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--hypothesis-profile=ci"]
_COMPARISONS = "Lt_LtE Lt_GtE LtE_Lt LtE_Gt Gt_GtE Gt_LtE GtE_Gt GtE_Lt Eq_NotEq NotEq_Eq Is_IsNot IsNot_Is"
_ARITHMETIC = "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Div Mod_Mul Pow_Mul"
_WORDS = "AndWithOr OrWithAnd TrueWithFalse FalseWithTrue BreakWithContinue ContinueWithBreak"
OPERATORS = [
    *(f"ReplaceComparisonOperator_{pair}" for pair in _COMPARISONS.split()),
    *(f"ReplaceBinaryOperator_{pair}" for pair in _ARITHMETIC.split()),
    *(f"Replace{pair}" for pair in _WORDS.split()),
    *("ReplaceUnaryOperator_Delete_Not", "ReplaceUnaryOperator_Delete_USub"),
    *("AddNot", "NumberReplacer", "ZeroIterationForLoop"),
]

Reached = dict[str, dict[int, set[str]]]  # the tests that reach a line of a file
Seconds = dict[str, float]  # how long a test takes
Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Named:
    """What a mutant is known by, in whichever file it is."""

    language: str
    function: str
    operator: str
    index: int

    @property
    def key(self) -> str:
        """All of it."""
        return f"{self.language} {self.function} {self.operator} {self.index}"


@dataclass(frozen=True)
class Mutant(Named):
    """One change of a function, or of a constant."""

    path: str
    first: int  # the lines whose tests concern it
    last: int
    place: int = 0  # among the operator's places in the file; Python only
    text: str = ""  # of the mutated file


@dataclass(frozen=True)
class Row(Named):
    """What became of a mutant."""

    result: str  # killed, survived or timeout
    where: str  # for information

    @property
    def is_killed(self) -> bool:
        """Whether the tests distinguished the mutant from the original."""
        return self.result != "survived"


def main() -> None:
    """Run the sample, or compare two results; exit with 1 where significantly fewer are killed now."""
    match [word for word in sys.argv[1:] if word]:  # make gives an empty one where there is no earlier result
        case ["run", folder, *before] if len(before) < 2:
            try:
                rows = Sample(Path.cwd(), os.cpu_count() or 1).run()
            except KeyboardInterrupt:
                sys.exit("\nInterrupted: the next run continues, unless the working tree changes.")
            write_rows(Path(folder) / "mutants.csv", rows)
            print(describe(rows))
        case ["compare", *before, after] if before:
            rows = read_rows(Path(after))
        case _:
            sys.exit((__doc__ or "").split("\n\n")[1])
    if before:
        difference = Difference(read_rows(Path(before[0])), rows)
        print(difference)
        sys.exit(difference.is_lower)


# What is chosen.


def choose(mutants: Iterable[Mutant], number: int) -> list[Mutant]:
    """Return those whose keys have the smallest hashes."""
    return sorted(mutants, key=lambda one: hashlib.sha256(f"{SEED} {one.key}".encode()).digest())[:number]


def choose_python(root: Path) -> list[Mutant]:
    """Return the mutants that are chosen of the Python code."""
    return [
        replace(
            one,
            text=mutate_code((root / one.path).read_text(), OperatorProvider()[one.operator](), one.place),
        )
        for one in choose(list_python(root, PYTHON), PYTHON_MUTANTS)
    ]


def list_python(root: Path, folders: Iterable[str]) -> Iterator[Mutant]:
    """Yield all mutants of the Python files in folders, without their text."""
    found = []
    for path in (path for folder in folders for path in (root / folder).rglob("*.py")):
        nodes = list(ast_nodes(get_ast(path.read_text())))
        for operator in OPERATORS:
            mutation = OperatorProvider()[operator]()
            places = (node for node in nodes for _ in mutation.mutation_positions(node))
            for place, node in enumerate(places):
                if operator == "NumberReplacer" and place % 2:
                    continue  # a number less one; one more is enough, or numbers would be half of all
                function, text = declaration(node)
                lines = (statement(node).start_pos[0], node.end_pos[0])
                found.append((function, operator, text, str(path.relative_to(root)), place, lines))
    seen: Counter[tuple[str, str]] = Counter()
    for function, operator, _, name, place, lines in sorted(found):  # of one name: by text before file
        yield Mutant("python", function, operator, seen[function, operator], name, *lines, place=place)
        seen[function, operator] += 1


def declaration(node: Any) -> tuple[str, str]:
    """Return the qualified name of the function, constant or class that a node is in, and its text."""
    inner = node.search_ancestor("funcdef") or node.search_ancestor("expr_stmt", "classdef") or node
    names = [name.value for name in inner.get_defined_names()[:1]] if inner.type == "expr_stmt" else []
    outer = inner
    while outer is not None:
        if outer.type in ("funcdef", "classdef"):
            names.insert(0, outer.name.value)
        outer = outer.parent
    return ".".join(names), inner.get_code()


def statement(node: Any) -> Any:
    """Return the statement that a node is in, or whose header it is in."""
    while node.parent is not None and node.parent.type not in ("suite", "file_input"):
        node = node.parent
    return node


def choose_go(root: Path, program: Path) -> list[Mutant]:
    """Return the mutants that are chosen of the Go code."""
    line = [str(program), SEED, str(GO_MUTANTS), *(f"./{package}" for package in GO)]
    listed = subprocess.run(line, cwd=root / "replay", stdout=subprocess.PIPE, text=True, check=True).stdout
    mutants = []
    for one in map(json.loads, listed.splitlines()):
        path = str(Path(one.pop("path")).relative_to(root))
        at = one.pop("line")
        mutants.append(Mutant("go", **one, path=path, first=at, last=at))
    return mutants


def select_tests(mutant: Mutant, reached: Reached, seconds: Seconds) -> list[str]:
    """Return the tests that reach a mutant's lines, or its file when it runs on import, quickest first."""
    lines = reached.get(mutant.path, {})
    tests = {test for line in range(mutant.first, mutant.last + 1) for test in lines.get(line, ())}
    within, total_s = [], 0.0
    for test in sorted(tests or set().union(*lines.values()), key=lambda test: (seconds[test], test)):
        total_s += seconds[test]
        if total_s > MOST_TESTS_S:
            break
        within.append(test)
    return within


# How it runs.


class Sample:
    """The sample of a working tree."""

    def __init__(self, root: Path, jobs: int) -> None:
        self.root = root
        self.jobs = jobs
        self.programs = Programs()
        self.folders: SimpleQueue[Path] = SimpleQueue()  # copies of the tree that nobody uses
        self.stamps = count(1)  # of mutated files, so that Python never takes one's bytecode for another's
        columns = (
            TextColumn("{task.description:12}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        self.bar = Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty())

    def run(self) -> list[Row]:
        """Return what became of each mutant that is chosen, by key."""
        self.copy_trees()
        with self.bar:
            self.measure()
            chosen = choose_python(self.tree) + choose_go(self.tree, self.root / "bin" / "gomutants")
            path = self.work / "mutants.csv"
            done = {row.key: row for row in read_rows(path)} if path.exists() else {}
            originals = [
                replace(one, text=(self.tree / one.path).read_text()) for one in (chosen[0], chosen[-1])
            ]
            for one, result in self.each("Originals", originals, self.judge):
                if result != "survived":
                    sys.exit(f"The tests of {one.key} fail without it.")
            for one, result in self.each(
                "Mutants", [one for one in chosen if one.key not in done], self.judge
            ):
                where = f"{one.path}:{one.last}"
                done[one.key] = Row(one.language, one.function, one.operator, one.index, result, where)
                write_rows(path, done.values())
        return sorted((done[one.key] for one in chosen), key=lambda row: row.key)

    def copy_trees(self) -> None:
        """Copy the working tree for each job. Keep what an interrupted run of the same tree has measured."""
        listed = self.programs.run(["git", "ls-files", "-coz", "--exclude-standard"], self.root)[1].split(
            "\0"
        )
        names = sorted(name for name in listed if name and os.path.lexists(self.root / name))
        state = hashlib.sha256()
        for path in (self.root / name for name in names):
            content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
            state.update(f"{path}\0{len(content)}\0".encode() + content)
        self.work = self.root / "build" / "mutants" / state.hexdigest()[:12]
        if not self.work.exists():
            shutil.rmtree(self.work.parent, ignore_errors=True)
        for number in range(self.jobs):
            self.tree = self.work / f"tree-{number}"
            shutil.rmtree(self.tree, ignore_errors=True)
            for name in names:
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.root / name, self.tree / name, follow_symlinks=False)
            for name in (".venv", "bin"):
                (self.tree / name).symlink_to(self.root / name)
            self.folders.put(self.tree)

    def measure(self) -> None:
        """Run all tests once, to learn which lines each reaches and how long it takes."""
        known = self.work / "reached.json"
        if not known.exists():
            reached, seconds = self.measure_python()
            for (_, test), (covered, seconds[test]) in self.each(
                "Go's tests", self.list_go_tests(), self.measure_go
            ):
                for path, line in covered:
                    reached[path][line].append(test)
            known.write_text(json.dumps([reached, seconds]))
        lines, self.seconds = json.loads(known.read_text())
        self.reached: Reached = {
            path: {int(line): set(tests) for line, tests in each.items()} for path, each in lines.items()
        }

    def measure_python(self) -> tuple[dict[str, dict[int, list[str]]], Seconds]:
        """Return the Python tests that reach each line of a file, and how long each takes."""
        data = self.work / "coverage"
        options = [
            "-n",
            str(self.jobs),
            "--cov-context=test",
            "--cov-report=",
            *(f"--cov={path}" for path in PYTHON),
        ]
        self.run_original([*PYTEST, *options, *TESTS], self.tree, COVERAGE_FILE=str(data))
        coverage = CoverageData(str(data))
        coverage.read()
        reached: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        for file in coverage.measured_files():
            for line, contexts in coverage.contexts_by_lineno(file).items():
                tests = {context.rpartition("|")[0] for context in contexts} - {""}
                reached[str(Path(file).relative_to(self.tree))][line] += sorted(tests)
        seconds: Seconds = defaultdict(float)
        for table in (self.tree / "build").glob("durations-*.tsv"):
            for row in table.read_text().splitlines():
                duration_s, _, test = row.split("\t")
                seconds[test] += float(duration_s)
        return reached, dict(seconds)

    def list_go_tests(self) -> list[tuple[Path, str]]:
        """Return the Go tests: the program that has them and their package, and each one's name."""
        found = "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"
        packages = self.run_original(["go", "list", "-f", found, "./..."], self.tree / "replay")
        tests = []
        for package in packages.split():
            program = self.work / "tests" / package / "tests"
            covered = ",".join(f"./{folder}" for folder in GO)
            build = ["go", "test", "-c", "-cover", f"-coverpkg={covered}", "-o", str(program), package]
            self.run_original(build, self.tree / "replay")
            names = self.run_original(
                [str(program), "-test.list", "^(Test|Fuzz|Example)"], self.tree / package.partition("/")[2]
            )
            tests += [(program, f"{package} {name}") for name in names.split()]
        return tests

    def measure_go(self, test: tuple[Path, str], folder: Path) -> tuple[set[tuple[str, int]], float]:
        """Return the lines that a Go test reaches, and how long it takes."""
        program, (package, _, name) = test[0], test[1].partition(" ")
        profile = program.with_name(f"{name}.txt")
        start = monotonic()
        line = [str(program), f"-test.run=^{name}$", f"-test.coverprofile={profile}"]
        # Programs that a test builds and starts complain on stderr where they may not leave their coverage.
        left = program.with_name("left")
        left.mkdir(exist_ok=True)
        self.run_original(line, folder / package.partition("/")[2], GOCOVERDIR=str(left))
        return set(read_profile(profile.read_text())), monotonic() - start

    def judge(self, one: Mutant, folder: Path) -> str:
        """Return what becomes of a mutant."""
        tests = select_tests(one, self.reached, self.seconds)
        commands = python_commands(tests, folder) if one.language == "python" else go_commands(one, tests)
        limit_s = 30 + 5 * sum(self.seconds[test] for test in tests)
        path = folder / one.path
        original, state = path.read_bytes(), path.stat()
        path.write_text(one.text)
        os.utime(path, (next(self.stamps),) * 2)
        try:
            for line, where in commands:
                code, printed = self.programs.run(line, folder / where, limit_s)
                if code is None:
                    return "timeout"
                if code in (3, 5):  # pytest failed, or found no test
                    raise RuntimeError(f"{one.key}: {printed}")
                if code != 0:
                    return "killed"
            return "survived"
        finally:
            path.write_bytes(original)
            os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))

    def run_original(self, line: Sequence[str], folder: Path, **environment: str) -> str:
        """Return what a program prints that must not fail, as nothing is mutated yet."""
        code, printed = self.programs.run(line, folder, environment=environment)
        if code != 0:
            sys.exit(f"{printed}\nThis failed without any mutant: {' '.join(map(str, line))}")
        return printed

    def each(
        self, title: str, items: Sequence[Item], work: Callable[[Item, Path], Outcome]
    ) -> Iterator[tuple[Item, Outcome]]:
        """Yield each item with what the work makes of it in a copy of the tree, as it comes."""

        def do(item: Item) -> Outcome:
            folder = self.folders.get()
            try:
                return work(item, folder)
            finally:
                self.folders.put(folder)

        with ThreadPoolExecutor(self.jobs) as pool:
            waiting = {pool.submit(do, item): item for item in items}
            try:
                for one in self.bar.track(as_completed(waiting), total=len(items), description=title):
                    yield waiting[one], one.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.programs.end()
                raise


def python_commands(tests: list[str], folder: Path) -> list[tuple[list[str], str]]:
    """Return the command that runs Python tests, and its folder."""
    if not tests:
        return []
    names = folder / "build" / "tests.txt"
    names.parent.mkdir(exist_ok=True)
    names.write_text("\n".join(tests))
    return [([*PYTEST, "-x", f"@{names}"], ".")]


def go_commands(mutant: Mutant, tests: list[str]) -> list[tuple[list[str], str]]:
    """Return the commands that run Go tests, those of the mutant's own package first, and their folder."""
    packages: dict[str, list[str]] = defaultdict(list)
    for package, name in (test.split(" ") for test in tests):
        packages[package].append(name)
    own = Path(mutant.path).parent
    return [
        (
            ["go", "test", "-count=1", "-failfast", "-vet=off", f"-run=^({'|'.join(names)})$", package],
            "replay",
        )
        for package, names in sorted(packages.items(), key=lambda each: not each[0].endswith(f"/{own}"))
    ]


def read_profile(text: str) -> Iterator[tuple[str, int]]:
    """Yield the lines that Go's coverage profile names as reached, with their file."""
    for path, first, last in re.findall(
        r"^plimsoll/(\S+):(\d+)\.\d+,(\d+)\.\d+ \d+ [1-9]", text, re.MULTILINE
    ):
        for line in range(int(first), int(last) + 1):
            yield path, line


class Programs:
    """Runs programs, each in a process group of its own, so that all can be ended at once."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._ended = False

    def run(
        self,
        line: Sequence[str],
        folder: Path,
        timeout_s: float | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[int | None, str]:
        """Return a program's exit code, None where it took too long, and what it printed."""
        temporary = tempfile.mkdtemp(prefix="mutant-")
        own = {"PYTHONPATH": str(folder), "PYTEST_DEBUG_TEMPROOT": temporary, "TMPDIR": temporary}
        one = subprocess.Popen(
            line, cwd=folder, env={**os.environ, **own, **environment}, start_new_session=True, text=True,
            errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._running.add(one)
        try:
            if self._ended:
                raise KeyboardInterrupt
            printed, _ = one.communicate(timeout=timeout_s)
            return one.returncode, printed
        except subprocess.TimeoutExpired:
            _kill(one)
            return None, one.communicate()[0]
        finally:
            _kill(one)
            self._running.discard(one)
            shutil.rmtree(temporary, ignore_errors=True)

    def end(self) -> None:
        """End those that run, and those that are still to come."""
        self._ended = True
        for one in list(self._running):
            _kill(one)


def _kill(one: "subprocess.Popen[str]") -> None:
    """End a program and what it has started."""
    with suppress(ProcessLookupError):
        os.killpg(one.pid, signal.SIGKILL)
    one.wait()


# What came of it.


class Difference:
    """The paired difference of two results: McNemar's exact test over the mutants that both have."""

    def __init__(self, before: Iterable[Row], after: Iterable[Row]) -> None:
        old, new = ({row.key: row for row in rows} for rows in (before, after))
        both = old.keys() & new.keys()
        self.common = len(both)
        self.lost = sorted(key for key in both if old[key].is_killed and not new[key].is_killed)
        self.won = sorted(key for key in both if new[key].is_killed and not old[key].is_killed)
        n, fewer = len(self.lost) + len(self.won), min(len(self.lost), len(self.won))
        self.p = min(1.0, 2 * sum(comb(n, k) for k in range(fewer + 1)) / 2**n)
        self.is_lower = len(self.lost) > len(self.won) and self.p < 0.05

    def __str__(self) -> str:
        verdict = "significantly lower" if self.is_lower else "not significantly lower"
        sentence = (
            f"Of {self.common} mutants that both have, {len(self.lost)} are no longer killed and"
            f" {len(self.won)} are now: {verdict} (McNemar's exact test, p = {self.p:.3g})."
        )
        return "\n".join([*(f"  no longer killed: {key}" for key in self.lost), sentence])


def describe(rows: Iterable[Row]) -> str:
    """Return the share that the tests killed, by language and folder."""
    groups: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        for group in (f"{row.language}  {Path(row.where).parent}", row.language, "all"):
            groups[group].append(row.is_killed)
    return "\n".join(
        f"{group:48} {sum(killed):3} of {len(killed):3} killed, {100 * sum(killed) / len(killed):.0f} %"
        for group, killed in sorted(groups.items(), reverse=True)
    )


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a result."""
    with path.open(newline="") as file:
        return [Row(**{**row, "index": int(row["index"])}) for row in csv.DictReader(file)]  # type: ignore[arg-type]


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a result."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(field.name for field in fields(Row))
        table.writerows(astuple(row) for row in rows)


if __name__ == "__main__":
    main()
