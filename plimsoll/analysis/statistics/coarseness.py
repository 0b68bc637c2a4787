"""How short a time is that a log cannot tell."""

COARSE = 10  # times what its durations are multiples of: below, a ratio of two times is of the rounding
