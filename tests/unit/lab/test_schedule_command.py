"""plimsoll schedule, with a systemctl and a crontab of files."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from plimsoll.cli import main
from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment import problems
from plimsoll.lab.schedule import installation, wanted
from plimsoll.lab.schedule.installation import Kind
from plimsoll.lab.steps.step import Command, Remove, Write
from tests.support.stand_ins import fakes, program, scheduled

Plimsoll = Callable[..., Result]


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in fakes(tmp_path / "fakes").items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(wanted, "_program", lambda: (str(program(tmp_path)),))
    # Asks every scenario for its settings, in a process of its own: one test does
    monkeypatch.setattr(problems, "read_traits", lambda *_: {})
    monkeypatch.setattr(installation, "_PROCESSES", tmp_path / "proc")
    (tmp_path / "proc" / "7").mkdir(parents=True)
    (tmp_path / "proc" / "7" / "comm").write_text("cron\n")
    program(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def plimsoll(at: Path) -> Plimsoll:
    def run(*words: str) -> Result:
        state = ["--state", str(at / "state")]
        before, dashes, after = list(words), [], []
        if "--" in before:
            i = before.index("--")
            before, dashes, after = before[:i], ["--"], before[i + 1 :]
        return CliRunner().invoke(main, ["schedule", *before, *state, *dashes, *after])

    return run


def _units(at: Path) -> list[str]:
    folder = at / "fakes" / ".config" / "systemd" / "user"
    return sorted(path.name for path in folder.glob("*")) if folder.exists() else []


def test_a_user_timer_comes_and_goes(at: Path, plimsoll: Plimsoll) -> None:
    installed = plimsoll("install", "lab.yml", "--user")
    assert installed.exit_code == 0, installed.output
    assert "enable-linger" in installed.output
    assert _units(at) == ["plimsoll-quiet.service", "plimsoll-quiet.timer"]
    assert plimsoll("status", "quiet").exit_code == 0
    assert plimsoll("remove", "quiet").exit_code == 0
    assert _units(at) == []
    asked = (at / "fakes" / "systemctl.txt").read_text()
    for words in ("daemon-reload", "enable plimsoll-quiet.timer", "disable --now plimsoll-quiet.timer"):
        assert f"--user {words}\n" in asked
    assert plimsoll("status", "quiet").exit_code == 2
    again = plimsoll("remove", "quiet")
    assert again.exit_code == 0
    assert "nothing is installed" in again.output


def test_a_crontab_keeps_what_is_in_it(at: Path, plimsoll: Plimsoll) -> None:
    mine = b"MAILTO=me\n# 5\\% of \xff\n1 2 * * *\techo hello  \n"
    crontab = at / "fakes" / "table"
    crontab.write_bytes(mine)
    assert plimsoll("install", "lab.yml", "--cron", "--at", "03:15").exit_code == 0
    assert crontab.read_bytes().startswith(mine)
    assert b"\n15 3 * * * " in crontab.read_bytes()
    assert b"\n@reboot " in crontab.read_bytes()
    once = crontab.read_bytes()
    assert plimsoll("install", "lab.yml", "--cron", "--at", "03:15").exit_code == 0
    assert crontab.read_bytes() == once
    assert plimsoll("status").exit_code == 0
    assert plimsoll("remove", "quiet").exit_code == 0
    assert crontab.read_bytes() == mine


def test_no_crontab_before_is_none_after(at: Path, plimsoll: Plimsoll) -> None:
    assert plimsoll("install", "lab.yml", "--cron", "--no-resume-missed").exit_code == 0
    assert "@reboot" not in (at / "fakes" / "table").read_text()
    assert plimsoll("remove", "quiet").exit_code == 0
    assert not (at / "fakes" / "table").exists()


def test_another_kind_takes_the_place_of_the_first(at: Path, plimsoll: Plimsoll) -> None:
    plimsoll("install", "lab.yml", "--cron")
    assert plimsoll("install", "lab.yml", "--user").exit_code == 0
    assert not (at / "fakes" / "table").exists()
    assert plimsoll("install", "lab.yml", "--cron").exit_code == 0
    assert _units(at) == []


@pytest.mark.parametrize("kind", ["--user", "--cron"])
def test_a_dry_run_is_what_is_done(at: Path, plimsoll: Plimsoll, kind: str) -> None:
    """Pasted into a shell, the steps that were printed install what `install` does."""
    dry = plimsoll("install", "lab.yml", kind, "--dry-run")
    assert dry.exit_code == 0
    assert not (at / "state").exists()
    assert not (at / "fakes" / "systemctl.txt").exists()
    subprocess.run(["/bin/sh", "-ec", dry.output], check=True, env=dict(os.environ))
    status = plimsoll("status", "quiet")
    assert status.exit_code == 0, status.output
    dry = plimsoll("remove", "quiet", "--dry-run")
    assert plimsoll("status", "quiet").exit_code == 0
    subprocess.run(["/bin/sh", "-ec", dry.output], check=True, env=dict(os.environ))
    assert plimsoll("status", "quiet").exit_code == 2


def test_all_problems_at_once(at: Path, plimsoll: Plimsoll) -> None:
    (at / "lab.yml").write_text("name: quiet\nbackend: []\n")
    done = plimsoll(
        "install", "lab.yml", "--name", "../x", "--at", "25:00", "--user", "--", "--no-such-option"
    )
    assert done.exit_code == 2
    for part in (
        "backend: is not a known key",
        "scenarios: is missing",
        "25:00",
        "NAME: '../x'",
        "no-such-option",
    ):
        assert part in done.output, part
    assert not (at / "state").exists()


def test_options_of_scenarios_are_checked(
    at: Path, plimsoll: Plimsoll, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(at)
    (at / "lab.yml").write_text((at / "lab.yml").read_text().replace("log: access.log", "lag: access.log"))
    done = plimsoll("install", "lab.yml", "--user")
    assert done.exit_code == 2
    assert "lag" in done.output


REFUSED = [
    (
        ["--at", "03:00", "--on-calendar", "04:00", "--user"],
        "--at: cannot be combined with --on-calendar",
        "two times",
    ),
    (["--cron", "--on-calendar", "03:00 Europe/Berlin"], "no time zones", "a zone for cron"),
    (["--name", "a b", "--user"], "letters, digits", "a name with a space"),
    (["--name", "a%n", "--user"], "letters, digits", "a name that systemd would read"),
    (["--name", "-x", "--user"], "letters, digits", "a name like an option"),
    (["--name", "x\n", "--user"], "letters, digits", "a name with a second line"),
]


@pytest.mark.parametrize(("words", "said", "why"), REFUSED, ids=[row[2] for row in REFUSED])
def test_refused(at: Path, plimsoll: Plimsoll, words: list[str], said: str, why: str) -> None:
    done = plimsoll("install", "lab.yml", *words)
    assert done.exit_code == 2
    assert said in done.output
    assert not (at / "state").exists()


def test_a_name_that_others_have(at: Path, plimsoll: Plimsoll) -> None:
    folder = at / "fakes" / ".config" / "systemd" / "user"
    folder.mkdir(parents=True)
    (folder / "plimsoll-quiet.timer").write_text("[Timer]\n")
    done = plimsoll("install", "lab.yml", "--user")
    assert done.exit_code == 2
    assert "was not written by plimsoll schedule" in done.output
    assert plimsoll("remove", "quiet").exit_code == 0
    assert (folder / "plimsoll-quiet.timer").read_text() == "[Timer]\n"
    assert plimsoll("install", "lab.yml", "--user", "--name", "mine").exit_code == 0
    (at / "other.yml").write_text((at / "lab.yml").read_text())
    taken = plimsoll("install", "other.yml", "--user", "--name", "mine")
    assert taken.exit_code == 2
    assert "is already the schedule of" in taken.output


def _cut(at: Path, plimsoll: Plimsoll, keep: int) -> None:
    """Install, and be cut off after `keep` steps."""
    dry = json.loads(plimsoll("install", "lab.yml", "--user", "--dry-run", "--json").output)
    for step in dry["steps"][:keep]:
        subprocess.run(["/bin/sh", "-ec", step], check=True, env=dict(os.environ))


@pytest.mark.parametrize("keep", range(7))
def test_what_is_half_installed_is_reported_and_removed(at: Path, plimsoll: Plimsoll, keep: int) -> None:
    _cut(at, plimsoll, keep)
    whole = json.loads(plimsoll("install", "lab.yml", "--user", "--dry-run", "--json").output)
    assert len(whole["steps"]) == 6
    said = plimsoll("status")
    assert said.exit_code == (0 if keep in (0, 6) else 1), said.output
    assert plimsoll("remove", "quiet").exit_code == 0
    assert _units(at) == []
    assert plimsoll("status").output == "No schedule is installed.\n"


@pytest.mark.parametrize("keep", range(7))
def test_what_is_half_installed_is_made_whole(at: Path, plimsoll: Plimsoll, keep: int) -> None:
    _cut(at, plimsoll, keep)
    assert plimsoll("install", "lab.yml", "--user").exit_code == 0
    assert plimsoll("status").exit_code == 0


def _edit(path: Path) -> None:
    path.write_text(path.read_text() + "# mine\n")


UNWELL: list[tuple[Callable[[Path], object], str, str]] = [
    (
        lambda at: _edit(at / "fakes/.config/systemd/user/plimsoll-quiet.service"),
        "was edited, or is from another version",
        "edited",
    ),
    (
        lambda at: (at / "fakes/.config/systemd/user/plimsoll-quiet.timer").unlink(),
        "is gone",
        "a unit removed",
    ),
    (lambda at: (at / "fakes/active").unlink(), "is not running", "a timer that was stopped"),
    (lambda at: (at / "fakes/enabled").unlink(), "is not enabled", "a timer that was disabled"),
    (lambda at: (at / "fakes/no-systemd").touch(), "cannot ask systemd", "no systemd any more"),
    (lambda at: (at / "plimsoll").unlink(), "moved or removed", "the program removed"),
    (lambda at: (at / "lab.yml").unlink(), "lab.yml: cannot be read", "lab.yml removed"),
    (lambda at: (at / "lab.yml").write_text("name: x"), "is missing", "lab.yml spoilt"),
    (
        lambda at: (at / "state/quiet/schedule.json").write_text("{"),
        "schedule install again",
        "the definition spoilt",
    ),
    (lambda at: (at / "state/quiet/environment").write_text("A=1"), "chmod 600", "open passwords"),
]


@pytest.mark.parametrize(("harm", "said", "why"), UNWELL, ids=[row[2] for row in UNWELL])
def test_status_tells(
    at: Path, plimsoll: Plimsoll, harm: Callable[[Path], object], said: str, why: str
) -> None:
    assert plimsoll("install", "lab.yml", "--user").exit_code == 0
    assert plimsoll("status").exit_code == 0
    harm(at)
    result = plimsoll("status", "quiet")
    assert result.exit_code == 1, result.output
    assert said in result.output
    data = json.loads(plimsoll("status", "--json").output)
    assert any(said in problem for problem in data["schedules"][0]["problems"])


def test_status_reports_lines_that_were_changed(at: Path, plimsoll: Plimsoll) -> None:
    plimsoll("install", "lab.yml", "--cron")
    crontab = at / "fakes" / "table"
    text = crontab.read_text()
    crontab.write_text(text.replace("0 3 * * *", "0 4 * * *"))
    assert "have changed or are from another version" in plimsoll("status").output
    crontab.write_text("")
    assert "gone from the crontab" in plimsoll("status").output
    crontab.write_text(text.replace("# END", "# end"))
    assert plimsoll("status").exit_code == 2


def test_run_reports_and_ends_as_regress_does(at: Path, plimsoll: Plimsoll) -> None:
    plimsoll("install", "lab.yml", "--user")
    (at / "told.json").write_text(json.dumps({"regress": 1, "says": "p99.9 moved \x1b[31m"}))
    done = plimsoll("now", "quiet")
    assert done.exit_code == 1
    assert "quiet: regression\np99.9 moved \\x1b[31m\n" in done.output
    assert plimsoll("status").exit_code == 1
    assert "no night is due" in plimsoll("now", "quiet", "--timer").output
    plimsoll("remove", "quiet")
    plimsoll("install", "lab.yml", "--cron")
    assert plimsoll("now", "quiet", "--timer").output == "", "cron mails whatever is printed"
    assert plimsoll("now", "none").exit_code == 2


def test_purge_takes_results_and_leaves_experiments(at: Path, plimsoll: Plimsoll) -> None:
    plimsoll("install", "lab.yml", "--user")
    assert plimsoll("now", "quiet").exit_code == 0
    (at / "results/nights/quiet/history.sqlite").touch()
    experiments = [path for path in (at / "results").iterdir() if path.name != "nights"]
    assert len(experiments) == 1
    assert plimsoll("remove", "quiet").exit_code == 0
    assert (at / "results/nights/quiet/history.sqlite").exists()
    assert (at / "state/quiet/nights.json").exists()
    plimsoll("install", "lab.yml", "--user")
    assert plimsoll("remove", "quiet", "--purge").exit_code == 0
    assert not (at / "results/nights/quiet").exists()
    assert not (at / "state/quiet").exists()
    assert experiments[0].exists()


def test_the_system_s_timer_is_root_s_affair(
    at: Path, plimsoll: Plimsoll, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    done = plimsoll("install", "lab.yml", "--system")
    assert done.exit_code == 2
    assert "--system: needs root" in done.output


def test_the_system_s_timer(at: Path) -> None:
    schedule, place = scheduled(at, kind="system")
    none: dict[Kind, list[Path]] = {"system": [], "user": []}
    todo = installation.plan_install(schedule, place, installation.InstalledSchedule(none, [], "", None))
    written = {step.path: step.text for step in todo if isinstance(step, Write)}
    service, timer = place.unit_files("system", "quiet")
    assert "After=network-online.target" in written[service]
    assert "NoNewPrivileges=yes" in written[service]
    assert f"--state {place.state} --timer\n" in written[service]
    assert "OnCalendar=*-*-* 03:00:00 UTC\n" in written[timer]
    assert [step.words for step in todo if isinstance(step, Command)] == [
        ("systemctl", "daemon-reload"),
        ("systemctl", "enable", "plimsoll-quiet.timer"),
        ("systemctl", "restart", "plimsoll-quiet.timer"),
    ]
    there: dict[Kind, list[Path]] = {"system": [service, timer], "user": []}
    gone = installation.plan_removal(
        "quiet", place, installation.InstalledSchedule(there, [], "", schedule), False
    )
    assert [step.words[1:] for step in gone if isinstance(step, Command)] == [
        ("disable", "--now", "plimsoll-quiet.timer"),
        ("stop", "plimsoll-quiet.service"),
        ("daemon-reload",),
        ("reset-failed", "plimsoll-quiet.service", "plimsoll-quiet.timer"),
    ]
    assert {service, timer} < {step.path for step in gone if isinstance(step, Remove)}


def test_what_a_night_needs_is_looked_for_at_once(
    at: Path, plimsoll: Plimsoll, monkeypatch: pytest.MonkeyPatch
) -> None:
    (at / "proc" / "7" / "comm").write_text("nginx\n")
    (at / "fakes" / "crontab").unlink()
    monkeypatch.setenv("PATH", str(at / "fakes"))
    monkeypatch.setitem(sys.modules, "otava.analysis", None)
    lacks = ["Apache Otava is not installed", "crontab is not installed", "no cron daemon runs here"]
    done = plimsoll("install", "lab.yml", "--cron")
    assert done.exit_code == 2
    assert [what for what in lacks if what not in done.output] == []
    assert not (at / "state").exists()
    shown = plimsoll("install", "lab.yml", "--cron", "--dry-run")
    assert shown.exit_code == 0, "it is shown all the same"
    assert [what for what in lacks if what not in shown.stderr] == []
    assert "BEGIN plimsoll schedule quiet" in shown.stdout


@pytest.mark.parametrize("kind", ["--user", "--cron"])
def test_of_what_cannot_be_installed_nothing_stays(at: Path, plimsoll: Plimsoll, kind: str) -> None:
    (at / "fakes" / "no-systemd").touch()
    fails = '#!/bin/sh\n[ "$1" = -l ] && { echo "no crontab for you" >&2; exit 1; }\nexit 3\n'
    (at / "fakes" / "crontab").write_text(fails)
    done = plimsoll("install", "lab.yml", kind)
    assert done.exit_code == 2
    assert "nothing was installed" in done.output
    assert _units(at) == []
    assert not (at / "state" / "quiet").exists()


def test_what_was_installed_stays_where_it_cannot_be_installed_again(at: Path, plimsoll: Plimsoll) -> None:
    assert plimsoll("install", "lab.yml", "--user").exit_code == 0
    (at / "fakes" / "no-systemd").touch()
    assert plimsoll("install", "lab.yml", "--user", "--at", "04:00").exit_code == 2
    assert _units(at) == ["plimsoll-quiet.service", "plimsoll-quiet.timer"]


def test_a_crontab_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired(["crontab"], 60)

    monkeypatch.setattr(subprocess, "run", never)
    with pytest.raises(LabError, match="crontab -l: did not end within 60 s: try it by hand"):
        installation.read_crontab()
