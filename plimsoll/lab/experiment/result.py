"""The result of `plimsoll run`, which `--json` prints: what came of the experiment, and why it ended."""

from typing import Literal

from pydantic import BaseModel

from plimsoll.common.errors import PlimsollError
from plimsoll.lab.experiment.lock import BusyError

ExitReason = Literal["finished", "unfinished", "interrupted", "busy", "failed"]


class RunResult(BaseModel):
    """`directory` is the experiment's, None where it did not begin; `report` the path of its report.

    `not_measured`: volumes that fileio has not measured whole, and why. `exit_reason`: `finished` (all runs
    are, and all volumes measured), `unfinished` (some are not), `interrupted`, `busy` (another experiment
    uses a machine) or `failed`. `error` says why it is not `finished`.
    """

    directory: str | None = None
    report: str | None = None
    finished: list[str] = []
    not_done: list[str] = []
    set_aside: dict[str, str] = {}
    not_measured: dict[str, str] = {}
    exit_reason: ExitReason
    error: str | None = None


def result_of(error: PlimsollError) -> RunResult:
    """Return the result of an experiment that ended with `error`. Pure."""
    return RunResult(exit_reason="busy" if isinstance(error, BusyError) else "failed", error=str(error))
