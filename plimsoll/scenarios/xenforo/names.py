"""Names of steps that come from pages and output of strangers: few, short, and without what counts up."""

import re

from plimsoll.common.hostile import printable

_MOST = 48  # of the 64 routes that a run can name; the others are the login's and what stands for the rest
_NUMBER = re.compile(r"\d[\d.,:/%]*")
OTHER = "other"


class StepNames:
    """Gives each title its name; after 48 names every further one is `other`."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def name(self, title: str) -> str:
        """Return the name of `title`: numbers become #, so that a counter in it makes no new name."""
        name = printable(" ".join(_NUMBER.sub("#", title).split()), 60) or "untitled"
        if name not in self._known:
            if len(self._known) >= _MOST:
                return OTHER
            self._known.add(name)
        return name
