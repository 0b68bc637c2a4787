"""The one rule of which requests failed, and of how long a failure counts. Pure.

A failure is never fast: it counts at its time-out, however soon it came.
"""

import math

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.times import NEVER_US, Microseconds
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.records import Records

CLIENT_ERROR, TOO_MANY, SERVER_ERROR = 400, 429, 500


def failed(records: Records) -> NDArray[np.bool_]:
    """Return which of `records`, shape (n,), are failures: without a whole response, or answered wrongly.

    A wrong answer is a status of 500 or more where the log has none, 429 where the log has another, and one
    of 400 or more where the log has one below 400.
    """
    failures: NDArray[np.bool_] = records["error"] != 0
    refused = records["status"] >= CLIENT_ERROR
    if refused.any():  # most blocks have none
        at = np.flatnonzero(refused)
        failures[at] |= wrong_status(records["status"][at], records["logged_status"][at])
    return failures


def wrong_status(status: NDArray[np.uint16], logged: NDArray[np.uint16]) -> NDArray[np.bool_]:
    """Return where `status` is a wrong answer to what the log has (0: unknown); all have shape (n,)."""
    overloaded = (status >= SERVER_ERROR) & (logged < SERVER_ERROR)
    refused = (status == TOO_MANY) & (logged != TOO_MANY)
    unasked = (status >= CLIENT_ERROR) & (logged != 0) & (logged < CLIENT_ERROR)
    wrong: NDArray[np.bool_] = overloaded | refused | unasked
    return wrong


def answered_wrongly(
    records: Records, failures: NDArray[np.bool_], took_us: Microseconds, timeout_us: int | None
) -> NDArray[np.bool_]:
    """Return which `failures` are wrong answers that came before their time-out; all have shape (n,)."""
    if not failures.any():
        return failures
    wrong: NDArray[np.bool_] = failures & (records["error"] == 0)
    return wrong if timeout_us is None else wrong & (took_us < timeout_us)


def counted_us(took_us: Microseconds, failures: NDArray[np.bool_], timeout_us: int | None) -> Microseconds:
    """Return `took_us` as it counts: a failure at its time-out, or at what it took where that is longer.

    Without a `timeout_us` a failure counts as `NEVER_US`. All have shape (n,).
    """
    at = np.flatnonzero(failures)
    if not len(at):
        return took_us
    counted, number = took_us.copy(), took_us.dtype.type
    counted[at] = number(NEVER_US) if timeout_us is None else np.maximum(took_us[at], number(timeout_us))
    return counted


def timeout_us(facts: RunFacts) -> int | None:
    """Return how long a request of the run was waited for; None where run.json does not say so."""
    given = facts.load.settings.get("timeout_s") if facts.load else None
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    if not math.isfinite(given) or not 0 < given < NEVER_US / 1e6:
        return None
    return round(given * 1e6)
