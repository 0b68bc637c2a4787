"""Which iterations are whose."""

from itertools import count


class Work:
    """Hands out the iterations 1 … total, each once; of `shares` processes this one has share `index`.

    Shares are dealt like cards, so that their union is all iterations, each exactly once. Without a total
    there are more and more, until the time is up. `mine` is how many this process has.
    """

    def __init__(self, total: int | None, index: int = 0, shares: int = 1) -> None:
        if not 0 <= index < shares:
            raise ValueError(f"share {index} of {shares}")
        numbers = None if total is None else range(index + 1, total + 1, shares)
        self._numbers = count(index + 1, shares) if numbers is None else iter(numbers)
        self.index = index
        self.mine = None if numbers is None else len(numbers)
        self.begun = self.done = self.failed = self.failed_in_a_row = 0
        self.ended = self.time_is_up = False

    def next(self, *, in_time: bool = True) -> int | None:
        """Return the next iteration's number; None when there is no more, or none may begin any more."""
        if self.ended:
            return None
        if not in_time:
            self.time_is_up = True
            return None
        number = next(self._numbers, None)
        if number is not None:
            self.begun += 1
        return number

    def tell(self, well: bool) -> None:
        """Count an iteration that was done."""
        self.done += 1
        self.failed += not well
        self.failed_in_a_row = 0 if well else self.failed_in_a_row + 1

    def end(self) -> None:
        """Hand out no more."""
        self.ended = True

    @property
    def whole(self) -> bool:
        """Whether all iterations were done: when the time is up, all that were begun."""
        return self.done == (self.begun if self.time_is_up else self.mine)
