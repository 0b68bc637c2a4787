"""Ramps: `30s:10,2m:50` rises to 10 within 30 seconds, then to 50 within two more minutes. Pure."""

import re
from typing import NamedTuple

_STAGE = re.compile(r"([0-9]+(?:\.[0-9]+)?)(s|m|h)?:([0-9]+(?:\.[0-9]+)?)")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


class Stage(NamedTuple):
    """A straight line from the last stage's target (first from 0) to `target`."""

    duration_s: float
    target: float


def parse_stages(text: str) -> list[Stage]:
    """Return the stages of `text`. Raises ValueError that names the wrong part."""
    stages = []
    for part in text.split(","):
        found = _STAGE.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"{part!r} is not a stage such as 30s:10")
        stages.append(Stage(float(found[1]) * _SECONDS[found[2] or "s"], float(found[3])))
    if not any(stage.target for stage in stages) or not all(stage.duration_s for stage in stages):
        raise ValueError("needs a target above 0, and a duration above 0 in each stage")
    return stages
