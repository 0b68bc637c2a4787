"""Several gates, one error rate: Holm's step-down correction. Pure."""

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the adjusted p of each: to be held against the error rate of all gates together.

    The smallest is multiplied by how many there are, the next by one less, and so on; none falls below one
    that was smaller before, and none exceeds 1 (Holm, Scandinavian Journal of Statistics 6, 1979).
    """
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for step, at in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        highest = max(highest, min(1.0, p_values[at] * (len(p_values) - step)))
        adjusted[at] = highest
    return adjusted
