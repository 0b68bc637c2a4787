"""The options of a replay in an experiment, and its command line. Pure."""

import math
from typing import Any

from pydantic import Field, field_validator, model_validator

from plimsoll.lab.experiment.settings import Lab
from plimsoll.lab.experiment.together.members import Word
from plimsoll.lab.names import StrictModel

REPLAY = "replay"


class ReplayOptions(StrictModel):
    """The options of a replay in an experiment. A field's description stands in docs/lab.md."""

    log: list[Word] = Field(min_length=1, description="Access log, or a list of access logs.")
    format: Word | None = Field(
        None, description="goaccess preset or log-format string. Default: detected from the log."
    )
    speed: Word = Field("1", description="Multiple of the recorded pace, or `max`.")
    rate: float | None = Field(None, gt=0, description="Requests a second, in place of the log's pace.")
    users: int | None = Field(
        None, ge=1, description="Number of users in a closed loop, in place of the log's pace."
    )
    loops: int = Field(
        0, ge=0, description="Number of times to replay the log. 0: until the run's phases are over."
    )
    flags: list[Word] = Field(
        [], description="More flags for `bin/replay run`: [--unconditional, --tz, UTC]."
    )

    @field_validator("log", mode="before")
    @classmethod
    def _one(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @field_validator("speed", mode="before")
    @classmethod
    def _text(cls, value: object) -> object:
        return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else value

    @field_validator("speed")
    @classmethod
    def _pace(cls, value: str) -> str:
        try:
            right = value == "max" or 0 < float(value) < math.inf
        except ValueError:
            right = False
        if not right:
            raise ValueError("must be a number greater than 0, such as 10 or 0.5, or max")
        return value

    @model_validator(mode="after")
    def _one_pace(self) -> "ReplayOptions":
        given = [key for key in ("speed", "rate", "users") if key in self.model_fields_set]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)}: give only one of them")
        return self

    @field_validator("flags")
    @classmethod
    def _not_ours(cls, value: list[str]) -> list[str]:
        for flag in value:
            if flag.split("=")[0] in (
                "--target",
                "--connect-to",
                "--out",
                "--duration",
                "--warmup",
                "--backend",
            ):
                raise ValueError(f"{flag}: the lab sets this; leave it out")
            if flag.split("=")[0] in ("--fail-over", "--abort-on-fail", "--abort-after"):
                raise ValueError(f"{flag}: an experiment is judged by its gates.yml; leave it out")
        return value


def replay_words(lab: Lab, given: dict[str, Any], duration_s: float | None) -> list[str]:
    """Return the arguments of `bin/replay run`; `duration_s` is its length, warm-up included."""
    options = ReplayOptions.model_validate(given)
    pace = ["--rate", f"{options.rate:g}"] if options.rate else ["--speed", options.speed]
    if options.users:
        pace = ["--users", str(options.users)]
    return [
        *options.log,
        *(["--format", options.format] if options.format else []),
        *pace,
        *("--loops", str(options.loops if duration_s is not None else options.loops or 1)),
        *(["--duration", f"{duration_s:g}s"] if duration_s is not None else []),
        *("--warmup", f"{lab.warmup_s:g}s", "--seed", str(lab.seed), "--quiet"),
        *options.flags,
    ]
