"""Figures of times by name: exact ones, and those of which only a lower bound is known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from plimsoll.analysis.statistics.times import NEVER_US, FailedTimes
from plimsoll.common.units import WRONG_ANSWER, at_least, milliseconds


@dataclass(frozen=True)
class TimeFigures:
    """Figures in ms by name; None where there are too few requests, or where the figure is censored.

    A figure is censored where a failure is at or below its rank: it takes at least as long as `censored`
    says, which is None where the time-out is not known. `wrong` names those that fall on a wrong answer,
    which came in time.
    """

    ms: dict[str, float | None]
    censored: dict[str, float | None] = field(default_factory=dict)
    wrong: frozenset[str] = frozenset()

    @classmethod
    def of_ranks(
        cls, ranks: Mapping[str, int | None], at: Callable[[int], int], n: int, failed: FailedTimes
    ) -> "TimeFigures":
        """Make figures of order statistics: `at` returns that of a rank, from 1 to `n`, in microseconds.

        Wrong answers that came in time stand before the other failures.
        """
        first = n - failed.number
        wrong = {name for name, rank in ranks.items() if rank and first < rank <= first + failed.wrong}
        values_us = {name: None if rank is None else at(rank) for name, rank in ranks.items()}
        return replace(cls.of(values_us, failed.from_us), wrong=frozenset(wrong))

    @classmethod
    def of(cls, values_us: Mapping[str, int | None], failed_from_us: int | None) -> "TimeFigures":
        """Make figures of order statistics in microseconds; failures stand from `failed_from_us` on."""
        exact: dict[str, float | None] = {}
        censored: dict[str, float | None] = {}
        for name, us in values_us.items():
            if us is not None and failed_from_us is not None and us >= failed_from_us:
                exact[name], censored[name] = None, None if us == NEVER_US else us / 1000
            else:
                exact[name] = None if us is None else us / 1000
        return cls(exact, censored)

    def __getitem__(self, name: str) -> float | None:
        return self.ms[name]

    def least_ms(self, name: str) -> float | None:
        """Return the figure, or its lower bound; None where neither is known."""
        return self.censored[name] if name in self.censored else self.ms[name]

    def shown(self, name: str, spelled: Callable[[float | None], str] = milliseconds) -> str:
        """Return the figure as people read it: `412 ms`, `≥ 30 s`, `wrong answer`, or a dash."""
        if name in self.wrong:
            return WRONG_ANSWER
        if self.censored.get(name) is not None:
            return at_least(spelled(self.censored[name]))
        return spelled(self.ms[name])

    def as_json(self) -> dict[str, object]:
        """Return the figures, and `censored` beside them where there is any."""
        return {**self.ms, "censored": self.censored} if self.censored else {**self.ms}
