"""What all tests share: Hypothesis without a deadline, two workers, a process for what patches its own."""

import os
import signal
from collections import Counter
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import settings

from tests.support.chromium import browser as browser
from tests.support.rundir import records, traffic, write_run
from tests.support.workers import Groups, rank

# NumPy's threads would wait for each other busily, and the workers use all cores anyway.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shell begins what it runs in the background with SIGINT ignored, and so would be what the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_IS_WHOLE = os.environ.get("PLIMSOLL_SLOW") == "1"

# No test judges by the clock. A merge tries a few examples of each property, make test-lab-full a hundred.
settings.register_profile("plimsoll", deadline=None, max_examples=100 if _IS_WHOLE else 25)
settings.load_profile("plimsoll")

_SCENARIOS = Path(__file__).parent / "unit" / "scenarios"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the scenarios' tests unless they were asked for by name.

    Locust patches the standard library of the process that imports it, which tests of programs and threads do
    not survive.
    """
    if collection_path != _SCENARIOS:
        return None
    asked = (Path(argument.partition("::")[0]).resolve() for argument in config.args)
    return None if any(_SCENARIOS in (path, *path.parents) for path in asked) else True


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Groups:
    """Let one worker run what belongs together."""
    return Groups(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the groups that take longest, and leave what is slow to `make test-lab-full`."""
    items.sort(key=rank)
    if not _IS_WHOLE:
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="part of make test-lab-full (PLIMSOLL_SLOW=1)"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say why tests were skipped: each reason once, with the number of tests. Write how long all took."""
    _write_durations(terminalreporter, config)
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)
    if reasons:
        terminalreporter.section("skipped", sep="-")
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count:5d}  {reason}")


def _write_durations(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write build/durations-SUITE.tsv of a run of folders: seconds, phase and test, the slowest first."""
    folders = [Path(argument) for argument in config.args]
    if not all(folder.is_dir() for folder in folders) or config.getoption("lf", False):
        return
    phases = [
        (report.duration, report.when, report.nodeid)
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport)
    ]
    suite = "-".join(folder.name for folder in folders)
    path = config.rootpath / "build" / f"durations-{suite}.tsv"
    path.parent.mkdir(exist_ok=True)
    rows = [f"{duration_s:.2f}\t{when}\t{test}\n" for duration_s, when, test in sorted(phases, reverse=True)]
    path.write_text("".join(rows))


@pytest.fixture(autouse=True)
def _state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the looks of a user be remembered within a test only, and never those of this user."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state" / uuid4().hex))


@pytest.fixture
def small_run(tmp_path: Path) -> Path:
    """A thousand requests, a millisecond each."""
    return write_run(tmp_path / "run", records(1000))


@pytest.fixture(scope="session")
def busy_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten minutes of a site with a stall in them."""
    table = traffic(600, 60, stall_s=(200, 280))
    events = [
        {"t_ns": 0, "event": "run", "phase": "start"},
        {"t_ns": 200_000_000_000, "event": "zfs-send", "phase": "start"},
        {"t_ns": 280_000_000_000, "event": "zfs-send", "phase": "stop"},
    ]
    requests = {
        "total": len(table) + 32,
        "sent": len(table),
        "skipped": {"method_not_allowed": 32},
        "unsent": 0,
    }
    return write_run(
        tmp_path_factory.mktemp("busy") / "run",
        table,
        routes=["page", "image", "css-js", "admin-ajax"],
        events=events,
        summary={"requests": requests, "duration_s": 600.0},
        load={"digest": "d", "settings": {"timeout_s": 30.0}},
    )
