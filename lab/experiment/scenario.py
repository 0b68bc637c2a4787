"""The command line of a run. Pure, but for where the programs are."""

import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from lab.clones.clone import Target
from lab.experiment.order import PlannedRun
from lab.experiment.settings import Lab, Word

REPLAY = "replay"
_ROOT = Path(__file__).parents[2]


class ReplayOptions(BaseModel):
    """What a replay in an experiment can be told. A field's description stands in docs/lab.md."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    log: list[Word] = Field(min_length=1, description="Access logs: one, or a list.")
    format: Word | None = Field(None, description="goaccess preset or log-format string. Default: detected.")
    speed: Word = Field("1", description="Times the recorded pace, or `max`.")
    rate: float | None = Field(None, gt=0, description="Requests a second, instead of the log's pace.")
    users: int | None = Field(None, ge=1, description="So many users in a closed loop, instead.")
    loops: int = Field(0, ge=0, description="How often through the log; 0: until the run's phases are over.")
    flags: list[Word] = Field(
        [], description="Further flags of `bin/replay run`: [--unconditional, --tz, UTC]."
    )

    @field_validator("log", mode="before")
    @classmethod
    def _one(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @field_validator("speed", mode="before")
    @classmethod
    def _text(cls, value: object) -> object:
        return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else value

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
                raise ValueError(f"{flag}: is the lab's to say; leave it out")
        return value


def plimsoll() -> list[str]:
    """Return the command `plimsoll` of this very installation."""
    beside = Path(sys.executable).with_name("plimsoll")
    return [str(beside)] if beside.exists() else [sys.executable, "-m", "analysis"]


def replay_program() -> str:
    """Return the replay binary of this checkout."""
    return str(_ROOT / "bin" / "replay")


def run_command(lab: Lab, run: PlannedRun, target: Target, out: str, consent: bool) -> list[str]:
    """Return what does `run`, its run directory below `out`. `consent`: the clone is of our own making."""
    choice = lab.scenario(run.scenario)
    duration_s = lab.duration_s(choice)
    common = [
        *("--target", target.url),
        *(["--connect-to", target.connect_to] if target.connect_to else []),
        *("--backend", run.backend, "--repeat", str(run.repeat), "--out", out),
    ]
    if choice.scenario == REPLAY:
        return [replay_program(), "run", *_replay(lab, choice.options, duration_s), *common]
    given = [word for key, value in choice.options.items() for word in _option(key, value)]
    if duration_s is not None:
        given += ["--duration-s", f"{duration_s:g}"]
    if "seed" not in choice.options:
        given += ["--seed", str(lab.seed)]
    leave = ["--i-may-change-this-site"] if consent else []
    return [*plimsoll(), "scenario", choice.scenario, *common, *given, *leave, "--no-progress"]


def _replay(lab: Lab, given: dict[str, Any], duration_s: float | None) -> list[str]:
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


def _option(key: str, value: Any) -> list[str]:
    flag = "--" + key.replace("_", "-")
    if isinstance(value, bool):
        return [flag] if value else []
    return [flag, ",".join(value) if isinstance(value, list) else str(value)]
