"""Scenarios: what each is, whether its options are right, and what it needs on this machine.

They are asked in a process of their own: some import Locust, which patches the process that it is in.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from plimsoll.common.errors import PlimsollError, SettingsError, did_you_mean
from plimsoll.common.programs import missing_replay, own_program, replay_program
from plimsoll.common.validation import Location, problems_of
from plimsoll.lab.clones import find_driver
from plimsoll.lab.errors import last_words
from plimsoll.lab.experiment.design import variants
from plimsoll.lab.experiment.labfile import REPLAY, Lab, Member, ReplayOptions, ScenarioChoice
from plimsoll.scenarios import MODULES, find_scenario
from plimsoll.scenarios.running.clonelist import credentials, require_consent
from plimsoll.scenarios.running.settings import ChangingSettings

_CHECK_S = 120.0
_PREPARE_S = 3600.0

# A stand-in for the target, which is the clone's; of https, since that may ask for a certificate.
_NOWHERE = "https://127.0.0.1"
_LENGTH = "duration_s"
_OURS = {"target", "connect_to", "out", "backend", "repeat", "i_may_change_this_site", _LENGTH}
_LOG_S = 300.0  # to read a log; a longer one is readable
_HELP_S = 60.0
_ROOM_BYTES = 1 << 30

# Flags of `plimsoll replay` that `parse` has too: they decide whether a log is understood.
_OF_READING = re.compile(r"--(?:date-format|time-format|datetime-format|tz|config)")
_NO_FORMAT = re.compile(r"replay: (.+?): no known format matches")
_ALONE = {"--strict-hosts", "--allow-rejects", "--allow-duplicates"}
_FILES = (
    *("pages", "images", "installer", "editor_profile"),
    *("ssh_key", "ssh_known_hosts", "chromium", "site_config"),
)
_Answer = list[dict[str, str]]  # keys and their problems
_described: dict[str, Any] = {}
_known: dict[str, tuple[_Answer, _Answer]] = {}  # of a question: what is wrong, and what has no effect


@dataclass(frozen=True)
class ScenarioTraits:
    """The traits of a scenario: `changes` the site, is `timed` (takes `duration_s`)."""

    changes: bool
    timed: bool


TraitsByScenario = dict[str, ScenarioTraits]  # by the names in lab.yml; of what is together, each and all


class _NoAnswerError(SettingsError):
    """The scenarios did not answer in time."""

    def __init__(self, within_s: float) -> None:
        self.within_s = within_s
        super().__init__(
            f"scenarios cannot be checked: no answer within {within_s:g} s: is this machine too busy? Try "
            "again"
        )


def read_traits(lab: Lab, path: str) -> TraitsByScenario:
    """Return the traits of the scenarios of `lab`, all of whose options are right.

    `path` is the file's, for messages. Raises SettingsError with all problems.
    """
    members = list(_members(lab))
    scripted = [_question(member, lasts_s) for _, _, member, lasts_s in members if member.scenario != REPLAY]
    described, answers = _ask(scripted) if scripted else ({}, [])
    wrong_options = (wrong for wrong, _ in answers)
    kinds, problems = TraitsByScenario(), []
    for at, choice, member, _ in members:
        kind, wrong = _read_kind(member, described, next(wrong_options) if member.scenario != REPLAY else [])
        problems += [f"{path}: {at}.{what}" for what in wrong]
        if kind is None:
            continue
        kinds[choice.called_in_full(member)] = kind
        if choice.together:
            before = kinds.get(choice.called, kind)
            kinds[choice.called] = ScenarioTraits(before.changes or kind.changes, before.timed and kind.timed)
    if problems:
        raise SettingsError("\n".join(dict.fromkeys(problems)))
    return kinds


def _read_kind(
    member: Member, described: dict[str, Any], wrong: list[dict[str, str]]
) -> tuple[ScenarioTraits | None, list[str]]:
    """Return the traits of a scenario, None where it does not exist, and the problems of its keys."""
    if member.scenario == REPLAY:
        found: list[str] = []
        try:
            ReplayOptions.model_validate(member.options)
        except ValidationError as error:
            each = problems_of(error, "is not an option of a replay", ReplayOptions)
            found = [f"options.{one.key or 'options'}: {one.text}" for one in each]
        return ScenarioTraits(changes=False, timed=True), found
    if member.scenario not in described:
        there = ", ".join([REPLAY, *described])
        hint = did_you_mean(member.scenario, [REPLAY, *described])
        return None, [f"scenario: {member.scenario} does not exist; choose one of {there}{hint}"]
    about = described[member.scenario]
    ours = [
        f"{key}: the lab sets this{' by the phases' if key == _LENGTH else ''}; leave it out"
        for key in member.options
        if key in _OURS
    ]
    problems = ours + [f"{one['key']}: {one['problem']}" for one in wrong]
    kind = ScenarioTraits(changes=about["changes"] is not None, timed=_LENGTH in about["keys"])
    return kind, [f"options.{what}" for what in problems]


def idle_options(lab: Lab) -> Iterator[tuple[Location, str]]:
    """Yield the options of scenarios that have no effect in any variant: where, why, and what to do.

    `lab` is without mistakes.
    """
    members = [each for each in _members(lab) if each[2].scenario != REPLAY]
    questions = [_question(member, lasts_s) for _, _, member, lasts_s in members]
    answers = _ask(questions)[1] if questions else []
    found: dict[str, dict[str, str]] = {}  # by places, then keys
    for (at, *_), (_, idle) in zip(members, answers, strict=True):
        here = {one["key"]: one["problem"] for one in idle}
        found[at] = {key: why for key, why in found.get(at, here).items() if key in here}
    for at, keys in found.items():
        for key, why in keys.items():
            yield (*location_of(at), "options", key), why


def location_of(key: str) -> Location:
    """Return the location that `key` names, such as `scenarios.0.options.log`."""
    return tuple(int(part) if part.isdecimal() else part for part in key.split("."))


def prepare_members(lab: Lab, say: Callable[[str], None]) -> None:
    """Make on this machine what scenarios that run together need, so that none keeps the others waiting.

    Raises SettingsError.
    """
    for _, choice, member, lasts_s in _members(lab):
        if not choice.together or member.scenario == REPLAY:
            continue
        say(f"{choice.called_in_full(member)}: making what it needs on this machine, if anything ...")
        given = {"target": _NOWHERE, "seed": lab.seed} | member.options
        said = json.dumps(given | ({} if lasts_s is None else {"duration_s": lasts_s}))
        try:
            problems = json.loads(_answer(member.scenario, "--prepare", said=said, within_s=_PREPARE_S))
        except _NoAnswerError as error:
            raise SettingsError(
                f"{choice.called_in_full(member)}: what it needs on this machine was not made within "
                f"{error.within_s:g} s: run this again, which continues from there, or ask for "
                "less in its options"
            ) from None
        for one in problems:
            raise SettingsError(f"{choice.called_in_full(member)}: {one['problem']}")


def logs_in(scenario: str) -> bool:
    """Return whether a scripted scenario takes an account."""
    return "user" in _ask([])[0][scenario]["keys"]


def _members(lab: Lab) -> Iterator[tuple[str, ScenarioChoice, Member, float | None]]:
    """Yield each member as any variant has it, once: its place, entry, itself, and its length in seconds."""
    seen: list[tuple[str, Member, float | None]] = []
    for variant in variants(lab):
        for i, choice in enumerate(variant.lab.scenarios):
            for j, member in enumerate(choice.members):
                at = f"scenarios.{i}" + (f".together.{j}" if choice.together else "")
                lasts_s = variant.lab.member_duration_s(choice, member)
                if (at, member, lasts_s) not in seen:
                    seen.append((at, member, lasts_s))
                    yield at, choice, member, lasts_s


def _question(member: Member, duration_s: float | None) -> dict[str, Any]:
    given = {key: value for key, value in member.options.items() if key not in _OURS}
    return {
        "scenario": member.scenario,
        "settings": {"target": _NOWHERE, **given},
        _LENGTH: duration_s,
    }


def _ask(questions: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], list[tuple[_Answer, _Answer]]]:
    """Return all scenarios described, and the problems and the idle keys of each of `questions`.

    One process answers all that is not known yet: a scenario may import Locust, which takes a second.
    Raises _NoAnswerError, and SettingsError where they cannot be asked.
    """
    said = [json.dumps(question) for question in questions]
    new = [question for question in dict.fromkeys(said) if question not in _known]
    if new or not _described:
        answer = json.loads(_answer(said=f"[{','.join(new)}]", within_s=_CHECK_S))
        _described.update(answer["scenarios"])
        _known.update(zip(new, zip(answer["problems"], answer["idle"], strict=True), strict=True))
    return _described, [_known[question] for question in said]


def _answer(*words: str, said: str, within_s: float) -> str:
    """Return what the scenarios answer. Raises _NoAnswerError, and SettingsError where they cannot."""
    with subprocess.Popen(  # noqa: S603 our own module, by a list of words
        [sys.executable, "-m", "plimsoll.scenarios.check", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(said, within_s)
        except subprocess.TimeoutExpired:
            raise _NoAnswerError(within_s) from None
        finally:  # its helpers, too: they would go on making photographs
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode not in (0, 1) or not out:
        raise SettingsError(f"scenarios cannot be checked: {err.strip()[-500:]}")
    return out


def find_problems_here(lab: Lab) -> list[str]:
    """Return the obstacles on this machine, one sentence each. Changes nothing."""
    problems = [*_replays(lab), *_out(lab.out)]
    own_site = all(find_driver(backend.clone).has_own_site for backend in lab.backends)
    for called, member in _named_members(lab):
        if member.scenario in MODULES:
            problems += [f"{called}: {what}" for what in _scripted(lab, member, own_site)]
    return problems


def _named_members(lab: Lab) -> Iterator[tuple[str, Member]]:
    """Yield every scenario with its name, also of those that run together."""
    for choice in lab.scenarios:
        yield from ((choice.called_in_full(member), member) for member in choice.members)


def _replays(lab: Lab) -> Iterator[str]:
    replays = [(called, member) for called, member in _named_members(lab) if member.scenario == REPLAY]
    if replays and not Path(replay_program()).exists():
        yield missing_replay()
        return
    try:
        said = run_replay("run", "--help", timeout_s=_HELP_S).stdout if replays else ""
    except subprocess.TimeoutExpired:
        yield f"{replay_program()}: does not answer --help within {_HELP_S:g} s: build it again: make build"
        return
    known = re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", said)
    for called, member in replays:
        options = ReplayOptions.model_validate(member.options)
        yield from (f"{called}: flags: {what}" for what in flag_problems(options.flags, known))
        if why := _unreadable(options):
            yield f"{called}: log: {why}"


def flag_problems(flags: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return what is wrong with further flags of `plimsoll replay`, which has those `known`. Pure."""
    given = [flag.partition("=")[0] for flag in flags if flag.startswith("--")]
    return [
        f"{flag} is not a flag of plimsoll replay{did_you_mean(flag, known)}"
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
        done = run_replay("parse", "--stats", "--quiet", *reading_words(options))
    except subprocess.TimeoutExpired:
        return ""
    if not done.returncode:
        return ""
    if found := _NO_FORMAT.match(done.stderr):
        return f"{found[1]}: no known format matches it: name one in options.format (see docs/log-formats.md)"
    return last_words(done.stderr).removeprefix("replay: ")


def run_replay(*words: str, timeout_s: float | None = _LOG_S) -> "subprocess.CompletedProcess[str]":
    """Run `bin/replay`, and return how it ended. Raises OSError, and TimeoutExpired."""
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
        yield from _find_refusals(credentials, said, "http://127.0.0.1")
    for clone in (backend.clone for backend in lab.backends):
        if about.changes and not find_driver(clone).is_ours and (target := getattr(clone, "target", None)):
            leave = said | {"connect_to": getattr(clone, "connect_to", None)}
            yield from _find_refusals(
                lambda settings: require_consent(settings, member.scenario), leave, target
            )
    has_k6 = os.environ.get("PLIMSOLL_K6") or own_program("k6").exists() or shutil.which("go")
    if about.runs_on_k6 and not has_k6:
        yield "k6 is not built yet, and Go, which builds it, is not installed: install Go, or set PLIMSOLL_K6"


def _find_refusals(
    ask: Callable[[ChangingSettings], object], said: Mapping[str, object], target: str
) -> Iterator[str]:
    """Yield what `ask` raises for these options of a scenario."""
    kept = {key: said[key] for key in ("user", "password_file", "site_config", "connect_to") if key in said}
    try:
        ask(ChangingSettings.model_validate({"target": target, **kept}))
    except PlimsollError as error:
        yield from str(error).splitlines()


def _out(out: Path) -> Iterator[str]:
    there = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        yield f"out: {there} cannot be written to: choose another folder"
    elif shutil.disk_usage(there).free < _ROOM_BYTES:
        yield f"out: {out} has less than 1 GiB free: choose another folder"
