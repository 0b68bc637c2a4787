"""Looking again: each look at a growing experiment spends its share of the error that is allowed. Pure.

Deciding, running some more and deciding again gives several chances of a wrong verdict. So the looks share
one error rate. How many there will be is not known, so each spends six sevenths of what is left: 0.0429,
0.0061, 0.0009, … of 0.05. They never add up to more than the whole, whatever the looks have in common (an
error spending function as of Lan and DeMets, Biometrika 70, 1983, bounded by Bonferroni's inequality). The
first look gets the most, since most experiments are looked at once: six sevenths is what four runs a side
take to decide three gates.
"""

_EACH = 6 / 7


def spent(error: float, look: int) -> float:
    """Return the error that look number `look` (from 1) may make, of `error` in all."""
    return error * _EACH * (1 - _EACH) ** (look - 1)
