"""What was observed in runs and found on nights, as the history keeps it: text, and back."""

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from plimsoll.analysis.evidence.answers import RouteAnswers
from plimsoll.analysis.evidence.run import Observation
from plimsoll.analysis.regress.rows import NightFinding
from plimsoll.common.severity import Severity


def observation_text(seen: Observation) -> str:
    """Return it as JSON."""
    routes = {
        name: {each.name: _plain(getattr(answers, each.name)) for each in fields(answers)}
        for name, answers in seen.routes.items()
    }
    rest = {each.name: getattr(seen, each.name) for each in fields(seen) if each.name != "routes"}
    return json.dumps({"routes": routes} | rest)


def observation_of(text: str | None) -> Observation:
    """Return what `observation_text` was made of; of None, that nothing was observed."""
    if text is None:
        return Observation()
    known: dict[str, Any] = json.loads(text)
    routes = {
        name: RouteAnswers(**(each | {"kinds": np.array(each["kinds"], dtype=np.int64)}))
        for name, each in known.pop("routes").items()
    }
    return Observation(routes=routes, **known)


def findings_text(findings: Sequence[NightFinding]) -> str:
    """Return what the gatekeeper found on a night as JSON."""
    return json.dumps([asdict(each) for each in findings])


def night_findings(text: str | None) -> tuple[NightFinding, ...]:
    """Return what `findings_text` was made of; nothing of a night that nobody looked at yet."""
    return tuple(
        NightFinding(**(each | {"level": Severity(each["level"]), "runs": tuple(each["runs"])}))
        for each in json.loads(text or "[]")
    )


def _plain(value: Any) -> object:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
