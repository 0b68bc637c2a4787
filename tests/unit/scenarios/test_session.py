"""A process's share of a run: its iterations, the load that it records, a beginning that the lab gives."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from plimsoll import __version__
from plimsoll import scenarios as registry
from plimsoll.rundir.read import RunDirectory, read_facts
from plimsoll.scenarios.running.session import Iterations, build_facts, load_of_scenario, session_status
from plimsoll.scenarios.running.settings import BEGIN_VARIABLE, shapes_no_load
from tests.support.programs import ROOT
from tests.support.servers import serve_wsgi


@given(total=some.integers(0, 500), shares=some.integers(1, 12))
def test_the_shares_together_are_all_iterations_each_once(total: int, shares: int) -> None:
    works = [Iterations(total, index, shares) for index in range(shares)]
    done = []
    for work in works:
        while (number := work.next()) is not None:
            done.append(number)
            work.count(True)
    assert sorted(done) == list(range(1, total + 1))
    assert all(work.is_all_done for work in works)


@given(total=some.none() | some.integers(0, 50), shares=some.integers(1, 5), late=some.integers(0, 60))
def test_when_the_time_is_up_no_more_begin_and_what_was_begun_is_all(
    total: int | None, shares: int, late: int
) -> None:
    works = [Iterations(total, index, shares) for index in range(shares)]
    done = []
    for work in works:
        while (number := work.next(may_begin=work.begun < late)) is not None:
            assert not (work.time_is_up and work.is_all_done), "one is in flight"
            done.append(number)
            work.count(True)
        assert work.is_all_done
        assert work.next() is None or total is None or late < (work.share or 0)
    assert len(set(done)) == len(done)
    if total is None:
        assert sorted(done) == list(range(1, shares * late + 1)), "no number is left out"
    else:
        assert set(done) <= set(range(1, total + 1))


def test_an_iteration_that_was_left_half_way_is_not_done_although_the_time_is_up() -> None:
    work = Iterations(None)
    assert work.next() == 1
    assert work.next(may_begin=False) is None
    assert not work.is_all_done
    work.count(True)
    assert work.is_all_done


def test_work_that_was_ended_before_its_time_was_up_is_not_whole() -> None:
    work = Iterations(None)
    work.next()
    work.count(True)
    work.end()
    assert work.next(may_begin=False) is None
    assert not work.is_all_done


def test_work_that_was_ended_hands_out_no_more_and_is_not_whole() -> None:
    work = Iterations(3)
    assert work.next() == 1
    work.count(True)
    work.end()
    assert work.next() is None
    assert not work.is_all_done


def test_failures_are_counted_in_all_and_in_a_row() -> None:
    work = Iterations(9)
    for well in (False, False, True, False):
        work.next()
        work.count(well)
    assert (work.done, work.failed, work.failed_in_a_row) == (4, 3, 1)


def test_a_share_outside_the_shares_is_refused() -> None:
    with pytest.raises(ValueError, match="share 2 of 2"):
        Iterations(1, 2, 2)


def work_of(total: int | None, begun: int, failed: int = 0, *, may_begin: bool = True) -> Iterations:
    work = Iterations(total)
    for number in range(begun):
        work.next()
        work.count(number >= failed)
    if not may_begin:
        work.next(may_begin=False)
    return work


DIED = "the target gave no answer after 5.0 s"
ENDINGS: list[tuple[str, Iterations, str | None, str | None, str, str | None]] = [
    ("all was done", work_of(3, 3), None, None, "complete", None),
    ("some of it failed", work_of(3, 3, failed=2), None, None, "complete", None),
    ("the target died, and some had been done", work_of(30, 30, failed=20), None, DIED, "failed", DIED),
    ("the time was up, and the target dead", work_of(None, 5, may_begin=False), None, DIED, "failed", DIED),
    ("an interrupt is one, whatever the target did", work_of(3, 2), None, DIED, "interrupted", "2 of 3"),
    ("nothing succeeded", work_of(3, 3, failed=3), None, None, "failed", "no iteration succeeded"),
    ("no later step could succeed", work_of(3, 1), "refused", DIED, "failed", "refused"),
    ("none began", work_of(3, 0, may_begin=False), None, None, "failed", "no iteration began within 1 s"),
]


@pytest.mark.parametrize(("why", "work", "hopeless", "died", "status", "said"), ENDINGS)
def test_how_a_run_ended(
    why: str, work: Iterations, hopeless: str | None, died: str | None, status: str, said: str | None
) -> None:
    found, reason = session_status(work, hopeless, 1.0, died)
    assert found == status, why
    assert (reason is None) == (said is None), why
    assert said is None or said in (reason or ""), why


# Load: what of the settings shapes it, under one digest.


# A new setting is to be named here, or marked as NoLoad: whoever adds it decides.
SHAPING = {
    *("timeout_s", "seed", "iterations", "duration_s", "users", "path", "clean_up", "saves", "size_bytes"),
    *(
        "editor",
        "think_s",
        "ready_s",
        "images",
        "from_version",
        "to_version",
        "probe_ms",
        "probe_pages",
        "installer",
        "ssh_command",
        "model",
        "viewport_px",
        "pixel_ratio",
        "editor_profile",
    ),
    *(
        "rate",
        "visitors",
        "stages",
        "pages_per_visit",
        "pages",
        "max_pages",
        "skew",
        "no_files",
        "max_visitors",
    ),
    *("no_screenshots",),
}
NAMES = list(registry.MODULES)
TARGET = "http://127.0.0.1:8080"


def settings_of(scenario: str, **given: Any) -> Any:
    return registry.find_scenario(scenario).settings()(target=TARGET, **given)


@pytest.mark.parametrize("scenario", NAMES)
def test_each_setting_shapes_load_or_does_not(scenario: str) -> None:
    model = registry.find_scenario(scenario).settings()
    names, shapeless = set(model.model_fields), shapes_no_load(model)
    assert not SHAPING & shapeless
    assert names <= SHAPING | shapeless, "say of the new setting whether it shapes load"
    load = build_facts(scenario, settings_of(scenario), k6="1.4.0").load
    assert load is not None
    assert names & SHAPING <= load.settings.keys()
    assert not names & shapeless & load.settings.keys()
    assert load.settings["timeout_s"] > 0
    said = ("program", "program_version", "scenario", "k6_version")
    assert [load.settings[name] for name in said] == ["scenario", __version__, scenario, "1.4.0"]


SAME: list[tuple[str, str, dict[str, Any], bool]] = [
    ("another time-out", "download", {"timeout_s": 1.0}, False),
    ("more users", "download", {"users": 2}, False),
    ("another seed", "download", {"seed": 2}, False),
    ("as many iterations as by default", "download", {"iterations": 10}, True),
    ("more of them", "download", {"iterations": 11}, False),
    ("another backend", "download", {"backend": "two", "repeat": 2, "out": Path("elsewhere")}, True),
    ("an address to connect to", "download", {"connect_to": "127.0.0.1:81", "insecure": True}, True),
    ("another account", "save-article", {"user": "anne"}, True),
    ("more saves", "save-article", {"saves": 6}, False),
    ("another rate", "visitors", {"rate": 6.0}, False),
    ("a gate on the result", "visitors", {"max_p999_ms": 5.0, "dashboard": "127.0.0.1:5665"}, True),
]


@pytest.mark.parametrize(("why", "scenario", "changed", "same"), SAME)
def test_what_shapes_load_changes_the_digest(
    why: str, scenario: str, changed: dict[str, Any], same: bool
) -> None:
    base = load_of_scenario(scenario, settings_of(scenario), {})
    other = load_of_scenario(scenario, settings_of(scenario, **changed), {})
    assert (base.digest == other.digest) == same, why


def test_another_version_is_another_load() -> None:
    settings = settings_of("visitors")
    old, new = (load_of_scenario("visitors", settings, {"k6": version}) for version in ("1.4.0", "1.5.0"))
    assert old.digest != new.digest


def test_files_count_by_what_is_in_them(tmp_path: Path) -> None:
    pages = [tmp_path / name for name in ("one", "same", "other")]
    for path, text in zip(pages, ("/a\n", "/a\n", "/b\n"), strict=True):
        path.write_text(text)
    one, same, other = (
        load_of_scenario("visitors", settings_of("visitors", pages=path), {}).digest for path in pages
    )
    assert one == same
    assert one != other


def test_a_command_that_may_hold_a_password_stands_as_its_digest() -> None:
    settings = settings_of("upgrade-xenforo", ssh="root@forum", ssh_command="upgrade --password secret")
    load = load_of_scenario("upgrade-xenforo", settings, {})
    assert "secret" not in str(load.settings)
    assert load.settings["ssh_command"] is not None


# Beginning: a scenario waits with its first iteration until the lab tells it.


@pytest.fixture
def site() -> Iterator[str]:
    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        start("200 OK", [("Content-Length", "2")])
        return [b"ok"]

    with serve_wsgi(answer) as url:
        yield url


def started(site: str, out: Path, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "plimsoll", "scenario", "download", "--target", site, "--path", "/x"]
    return subprocess.Popen(
        [*command, "--out", str(out), *words, "--no-progress"],
        cwd=ROOT,
        env=os.environ | {BEGIN_VARIABLE: str(out / "begin")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def begun(out: Path) -> Path:
    """Wait until its clock runs, and return its run directory."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for path in out.glob("2*/run.json"):
            return path.parent
        time.sleep(0.05)
    raise AssertionError("it did not begin")


def test_its_clock_runs_and_nothing_is_sent_until_it_is_told(site: str, tmp_path: Path) -> None:
    with started(site, tmp_path, "--iterations", "3", "--users", "3") as process:
        run = begun(tmp_path)
        time.sleep(0.5)
        assert process.poll() is None
        assert (run / "requests.npy").stat().st_size <= 1024, "no record yet"
        told_ns = time.time_ns()
        (tmp_path / "begin").touch()
        assert process.wait(60) == 0
    found = RunDirectory.open(run)
    assert found.facts.started_at is not None
    first_ns = min(int(block["due_ns"].min()) for block in found.requests.blocks())
    assert found.facts.started_at.timestamp() * 1e9 + first_ns >= told_ns - 1e6


def test_one_that_is_never_told_ends_when_its_time_is_up(site: str, tmp_path: Path) -> None:
    with started(site, tmp_path, "--duration-s", "0.5") as process:
        assert process.wait(60) == 1
    assert read_facts(begun(tmp_path)).reason == "no iteration began within 0.5 s"


def test_one_that_waits_ends_when_it_is_asked_to(site: str, tmp_path: Path) -> None:
    with started(site, tmp_path, "--iterations", "3") as process:
        run = begun(tmp_path)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 1
    assert read_facts(run).status == "interrupted"
