"""The iterations of a run, dealt out to its processes and users."""

import itertools


class Work:
    """The iterations 1 … total, each handed out once; this process has share `index` of `shares`.

    Shares are dealt like cards, so that together they are all iterations, each exactly once. Without a total
    there is no limit but the time. `mine` is the number of this process's iterations, None without a total.
    """

    def __init__(self, total: int | None, index: int = 0, shares: int = 1) -> None:
        if not 0 <= index < shares:
            raise ValueError(f"share {index} of {shares}")
        numbers = None if total is None else range(index + 1, total + 1, shares)
        self._numbers = itertools.count(index + 1, shares) if numbers is None else iter(numbers)
        self.index = index
        self.mine = None if numbers is None else len(numbers)
        self.begun = self.done = self.failed = self.failed_in_a_row = 0
        self.ended = self.time_is_up = False

    def next(self, *, in_time: bool = True) -> int | None:
        """Return the number of the next iteration; None if no further one may begin."""
        if self.ended:
            return None
        if not in_time:
            self.time_is_up = True
            return None
        number = next(self._numbers, None)
        if number is not None:
            self.begun += 1
        return number

    def count(self, well: bool) -> None:
        """Count one iteration that ended."""
        self.done += 1
        self.failed += not well
        self.failed_in_a_row = 0 if well else self.failed_in_a_row + 1

    def end(self) -> None:
        """Hand out no more."""
        self.ended = True

    @property
    def whole(self) -> bool:
        """True if all iterations were done; once the time is up, all that were begun."""
        return self.done == (self.begun if self.time_is_up else self.mine)
