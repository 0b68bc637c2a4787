"""Runs that loaded one clone at the same time, as an entry of lab.yml with `together` has them. Pure."""

from plimsoll.rundir.runfacts import RunFacts


def ran_together(one: RunFacts, other: RunFacts) -> bool:
    """Return whether both are members of one run, so that it was meant that they overlap."""
    first, second = one.together, other.together
    if first is None or second is None:
        return False
    return (one.experiment, one.backend, first.run) == (
        other.experiment,
        other.backend,
        second.run,
    ) and first.member != second.member
