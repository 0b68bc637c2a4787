"""Whether runs were of one load. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.run import RunEvidence
from plimsoll.common.differences import differing
from plimsoll.rundir.facts import Together

_OF_THE_PLACE = {"target", "connect_to", "backend", "repeat", "user", "imported_from"}
_VERSIONS = "version"  # the ends of the keys that may matter, but need not
_MOST_NAMED = 3
_DIGITS = 12  # of a digest that is shown


def load_findings(runs: Sequence[RunEvidence], scenario: str) -> Iterator[Finding]:
    """Yield what differs in the load of the runs of one scenario, of both sides."""
    said = [run.directory.facts.load for run in runs]
    known = [load.settings for load in said if load is not None]
    names = tuple(run.name for run in runs)
    if known and len(known) < len(runs):
        without = [run.name for run, load in zip(runs, said, strict=True) if load is None]
        text = f"{without[0]} does not say what shaped its load, as other runs of {scenario} do."
        yield Finding(FindingKind.UNKNOWN_LOAD, text, tuple(without), scenario)
    found = dict(differing(known))
    found |= {key: values for key, values in differing([_done_as(run) for run in runs]) if key not in found}
    versions = {key: values for key, values in found.items() if key.endswith(_VERSIONS)}
    for kind, different in (
        (FindingKind.OTHER_LOAD, {key: found[key] for key in found if key not in versions}),
        (FindingKind.OTHER_VERSION, versions),
    ):
        if different:
            text = f"The runs of {scenario} are not of one load: {_shown(different)} differ."
            yield Finding(kind, text, names, scenario)


def load_facts(run: RunEvidence) -> dict[str, Any]:
    """Return all that is known to have shaped the load of `run` (hostile)."""
    load = run.directory.facts.load
    return _done_as(run) | (load.settings if load else {})


def _done_as(run: RunEvidence) -> dict[str, Any]:
    """Return what the lab and older versions say of the load (hostile)."""
    facts = run.directory.facts
    said: dict[str, Any] = {
        "phases": facts.phases.model_dump() if facts.phases else None,
        "saturator": run.saturation.name if run.saturation else "none",
        "loop": facts.loop,
        "speed": facts.speed,
        "warmup_s": facts.warmup_s,
        "seed": facts.seed,
    }
    if facts.together:
        said["together_with"] = _company(facts.together)
        said["begins_s"] = facts.together.begins_s
    if facts.load is None:
        said["logs"] = [
            {"log": log.path.rsplit("/", 1)[-1], "lines": log.lines, "first": log.first, "last": log.last}
            for log in facts.logs
        ]
        settings = facts.scenario_settings.items()
        said["settings"] = {key: value for key, value in settings if key not in _OF_THE_PLACE}
        program = facts.program
        said["program"] = program.name
        said["program_version"] = program.version
    return said


def _company(together: Together) -> str:
    """Return who else loaded the clone, each with the digest of its load: part of what a run went through."""
    others = sorted(together.others, key=lambda each: each.member)
    return ", ".join(f"{each.member} {(each.load or '–')[:_DIGITS]}" for each in others)


def _shown(different: dict[str, tuple[Any, ...]]) -> str:
    named = [f"{key} ({_values(values)})" for key, values in list(different.items())[:_MOST_NAMED]]
    more = f" and {len(different) - len(named)} more" if len(different) > len(named) else ""
    return ", ".join(named) + more


def _values(values: Sequence[object]) -> str:
    return " / ".join(dict.fromkeys("–" if value is None else str(value) for value in values))
