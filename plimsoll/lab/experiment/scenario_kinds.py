"""The traits of scenarios, read in a process of their own: Locust patches the process that it is in."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from plimsoll.common.errors import SettingsError, did_you_mean
from plimsoll.common.validation import Location, problems_of
from plimsoll.lab.experiment.factors.variants import variants
from plimsoll.lab.experiment.replay_options import REPLAY, ReplayOptions
from plimsoll.lab.experiment.settings import Lab, ScenarioChoice
from plimsoll.lab.experiment.together.lasting import member_duration_s
from plimsoll.lab.experiment.together.members import Member

_CHECK_S = 120.0
_PREPARE_S = 3600.0
# A stand-in for the target, which is the clone's; of https, since that may ask for a certificate.
_NOWHERE = "https://127.0.0.1"
_LENGTH = "duration_s"
_described: dict[str, Any] = {}
_Answer = list[dict[str, str]]  # keys and their problems
_known: dict[str, tuple[_Answer, _Answer]] = {}  # of a question: what is wrong, and what has no effect
_OURS = {"target", "connect_to", "out", "backend", "repeat", "i_may_change_this_site", _LENGTH}


@dataclass(frozen=True)
class ScenarioTraits:
    """The traits of a scenario: `changes` the site, is `timed` (takes `duration_s`)."""

    changes: bool
    timed: bool


class _NoAnswerError(SettingsError):
    """The scenarios did not answer in time."""

    def __init__(self, within_s: float) -> None:
        self.within_s = within_s
        super().__init__(
            f"scenarios cannot be checked: no answer within {within_s:g} s: is this machine too busy? Try "
            "again"
        )


TraitsByScenario = dict[str, ScenarioTraits]  # by the names in lab.yml; of what is together, each and all


def traits_of(lab: Lab, path: str) -> TraitsByScenario:
    """Return the traits of the scenarios of `lab`, all of whose options are right.

    `path` is the file's, for messages. Raises SettingsError with all problems.
    """
    members = list(_members(lab))
    scripted = [_question(member, lasts_s) for _, _, member, lasts_s in members if member.scenario != REPLAY]
    described, answers = _ask(scripted) if scripted else ({}, [])
    wrong_options = (wrong for wrong, _ in answers)
    kinds, problems = TraitsByScenario(), []
    for at, choice, member, _ in members:
        kind, wrong = _kind(member, described, next(wrong_options) if member.scenario != REPLAY else [])
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
                lasts_s = member_duration_s(variant.lab, choice, member)
                if (at, member, lasts_s) not in seen:
                    seen.append((at, member, lasts_s))
                    yield at, choice, member, lasts_s


def _kind(
    member: Member, described: dict[str, Any], wrong: list[dict[str, str]]
) -> tuple[ScenarioTraits | None, list[str]]:
    """Return the traits of a scenario, None where there is no such, and the problems of its keys."""
    if member.scenario == REPLAY:
        return ScenarioTraits(changes=False, timed=True), _replay_problems(member)
    if member.scenario not in described:
        there = ", ".join([REPLAY, *described])
        hint = did_you_mean(member.scenario, [REPLAY, *described])
        return None, [f"scenario: there is no scenario {member.scenario}; choose one of {there}{hint}"]
    about = described[member.scenario]
    ours = [
        f"{key}: the lab sets this{' by the phases' if key == _LENGTH else ''}; leave it out"
        for key in member.options
        if key in _OURS
    ]
    problems = ours + [f"{one['key']}: {one['problem']}" for one in wrong]
    kind = ScenarioTraits(changes=about["changes"] is not None, timed=_LENGTH in about["keys"])
    return kind, [f"options.{what}" for what in problems]


def prepare(lab: Lab, say: Callable[[str], None]) -> None:
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
                f"{error.within_s:g} s: start it again, which goes on with what is made by now, or ask for "
                "less in its options"
            ) from None
        for one in problems:
            raise SettingsError(f"{choice.called_in_full(member)}: {one['problem']}")


def _question(member: Member, duration_s: float | None) -> dict[str, Any]:
    given = {key: value for key, value in member.options.items() if key not in _OURS}
    return {
        "scenario": member.scenario,
        "settings": {"target": _NOWHERE, **given},
        _LENGTH: duration_s,
    }


def _replay_problems(member: Member) -> list[str]:
    try:
        ReplayOptions.model_validate(member.options)
    except ValidationError as error:
        return [
            f"options.{one.key or 'options'}: {one.text}"
            for one in problems_of(error, "is not an option of a replay", ReplayOptions)
        ]
    return []


def _ask(questions: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], list[tuple[_Answer, _Answer]]]:
    """Return all scenarios described, and the problems and the idle keys of each of `questions`.

    One process answers all that is not known yet: it imports Locust, which takes a second.
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
