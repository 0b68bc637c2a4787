"""When a load generator is too late to measure by: one rule, for runs of every program. Pure."""

_LIMIT_LAG_MS = 1.0
_LIMIT_FRACTION = 0.05


def is_late(lag_ms: float | None, response_ms: float | None) -> bool:
    """Return whether a generator with this lag limits a response time, both being the same percentile.

    Its lag is then too long both in itself and beside what it measured (docs/run-format.md).
    """
    if lag_ms is None or response_ms is None:
        return False
    return lag_ms > max(_LIMIT_LAG_MS, _LIMIT_FRACTION * response_ms)
