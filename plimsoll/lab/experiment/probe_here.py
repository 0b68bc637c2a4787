"""Looks at this machine, which the load comes from: logs, accounts, consent, programs, room for results."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from plimsoll.common.errors import PlimsollError, did_you_mean
from plimsoll.common.programs import missing_replay, own_program, replay_program
from plimsoll.lab.clones import driver_of
from plimsoll.lab.errors import last_words
from plimsoll.lab.experiment.replay_options import REPLAY, ReplayOptions
from plimsoll.lab.experiment.scenario_kinds import logs_in
from plimsoll.lab.experiment.settings import Lab
from plimsoll.lab.experiment.together.members import Member
from plimsoll.scenarios import MODULES, find_scenario
from plimsoll.scenarios.running.clonelist import credentials, require_consent
from plimsoll.scenarios.running.settings import ChangingSettings

_LOG_S = 300.0  # to read a log; a longer one is readable
_HELP_S = 60.0
_ROOM_BYTES = 1 << 30
# Flags of `bin/replay run` that `parse` has too: they decide whether a log is understood.
_OF_READING = re.compile(r"--(?:date-format|time-format|datetime-format|tz|config)")
_NO_FORMAT = re.compile(r"replay: (.+?): no known format matches")
_ALONE = {"--strict-hosts", "--allow-rejects", "--allow-duplicates"}
_FILES = (
    *("pages", "images", "installer", "editor_profile"),
    *("ssh_key", "ssh_known_hosts", "chromium", "site_config"),
)


def probe_here(lab: Lab) -> list[str]:
    """Return the obstacles on this machine, one sentence each. Changes nothing."""
    problems = [*_replays(lab), *_out(lab.out)]
    own_site = all(driver_of(backend.clone).has_own_site for backend in lab.backends)
    for called, member in _members(lab):
        if member.scenario in MODULES:
            problems += [f"{called}: {what}" for what in _scripted(lab, member, own_site)]
    return problems


def _members(lab: Lab) -> Iterator[tuple[str, Member]]:
    """Yield every scenario with its name, also of those that run together."""
    for choice in lab.scenarios:
        yield from ((choice.called_in_full(member), member) for member in choice.members)


def _replays(lab: Lab) -> Iterator[str]:
    replays = [(called, member) for called, member in _members(lab) if member.scenario == REPLAY]
    if replays and not Path(replay_program()).exists():
        yield missing_replay()
        return
    try:
        known = _known_flags() if replays else []
    except subprocess.TimeoutExpired:
        yield f"{replay_program()}: does not answer --help within {_HELP_S:g} s: build it again: make build"
        return
    for called, member in replays:
        options = ReplayOptions.model_validate(member.options)
        yield from (f"{called}: flags: {what}" for what in flag_problems(options.flags, known))
        if why := _unreadable(options):
            yield f"{called}: log: {why}"


def flag_problems(flags: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return what is wrong with further flags of `bin/replay run`, which has those `known`. Pure."""
    given = [flag.partition("=")[0] for flag in flags if flag.startswith("--")]
    return [
        f"{flag} is no flag of bin/replay run{did_you_mean(flag, known)}"
        for flag in given
        if flag not in known
    ]


def reading_words(options: ReplayOptions) -> list[str]:
    """Return the words with which `bin/replay parse` reads the logs as the replay will. Pure."""
    words, flags = [], list(options.flags)
    while flags:
        flag = flags.pop(0)
        if _OF_READING.match(flag):
            words += [flag] if "=" in flag else [flag, *flags[:1]]
        elif flag in _ALONE:
            words.append(flag)
    return [*words, *(["--format", options.format] if options.format else []), "--", *options.log]


def _unreadable(options: ReplayOptions) -> str:
    """Return why the replay's own reader would not read the logs, empty where it does."""
    try:
        done = _asked("parse", "--stats", "--quiet", *reading_words(options))
    except subprocess.TimeoutExpired:
        return ""
    if not done.returncode:
        return ""
    if found := _NO_FORMAT.match(done.stderr):
        return f"{found[1]}: no known format matches it: name one in options.format (see docs/log-formats.md)"
    return last_words(done.stderr).removeprefix("replay: ")


def _known_flags() -> list[str]:
    return re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", _asked("run", "--help", timeout_s=_HELP_S).stdout)


def _asked(*words: str, timeout_s: float = _LOG_S) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603 our own program, by a list of words
        [replay_program(), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=timeout_s,
    )


def _scripted(lab: Lab, member: Member, own_site: bool) -> Iterator[str]:
    """Yield what a scenario needs on this machine: its files, account, consent, k6."""
    about, said = find_scenario(member.scenario), member.options
    for key in _FILES:
        if (path := said.get(key)) and not os.access(str(path), os.R_OK):
            yield f"options.{key}: {path} cannot be read here"
    by_command = "ssh" in said  # then nobody logs in to the site
    if logs_in(member.scenario) and not by_command and (not own_site or "password_file" in said):
        yield from _refused(credentials, said, "http://127.0.0.1")
    for clone in (backend.clone for backend in lab.backends):
        if about.changes and not driver_of(clone).is_ours and (target := getattr(clone, "target", None)):
            leave = said | {"connect_to": getattr(clone, "connect_to", None)}
            yield from _refused(lambda settings: require_consent(settings, member.scenario), leave, target)
    if about.runs_on_k6 and not (os.environ.get("PLIMSOLL_K6") or _has_k6()):
        yield "k6 is not built yet, and there is no go to build it with: install Go, or set PLIMSOLL_K6"


def _has_k6() -> bool:
    return own_program("k6").exists() or shutil.which("go") is not None


def _refused(
    ask: Callable[[ChangingSettings], object], said: Mapping[str, object], target: str
) -> Iterator[str]:
    """Yield what `ask` raises for these options of a scenario."""
    kept = {key: said[key] for key in ("user", "password_file", "site_config", "connect_to") if key in said}
    try:
        ask(ChangingSettings.model_validate({"target": target, **kept}))
    except PlimsollError as error:
        yield from str(error).splitlines()


def _out(out: Path) -> Iterator[str]:
    there = _existing(out)
    if not there.is_dir() or not os.access(there, os.W_OK):
        yield f"out: {there} cannot be written into: choose another folder"
    elif shutil.disk_usage(there).free < _ROOM_BYTES:
        yield f"out: {out} has less than 1 GiB free: choose another folder"


def _existing(path: Path) -> Path:
    path = path.absolute()
    return path if path.exists() else _existing(path.parent)
