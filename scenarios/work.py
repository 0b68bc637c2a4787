"""Which iterations are whose."""


class Work:
    """Hands out the iterations 1 … total, each once; of `shares` processes this one has share `index`.

    Shares are dealt like cards, so that their union is all iterations, each exactly once.
    """

    def __init__(self, total: int, index: int = 0, shares: int = 1) -> None:
        if not 0 <= index < shares:
            raise ValueError(f"share {index} of {shares}")
        self._numbers = iter(range(index + 1, total + 1, shares))
        self.index = index
        self.mine = len(range(index + 1, total + 1, shares))
        self.begun = self.done = self.failed = self.failed_in_a_row = 0
        self.ended = False

    def next(self) -> int | None:
        """Return the next iteration's number, or None when there is no more or the work was ended."""
        if self.ended:
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
        """Whether all iterations were done."""
        return self.done == self.mine
