"""The lines of a timer in a user's crontab, between marks; everything else stays as it is. Pure."""

import re
import shlex
from collections.abc import Sequence

from plimsoll.lab.errors import LabError
from plimsoll.lab.schedule.calendar import Calendar

_LONGEST = 998  # characters of a command that Debian's cron takes
_ALL = 7


def lines(calendar: Calendar, command: Sequence[str], resume_missed: bool) -> list[str]:
    """Return the lines that run `command`; with `resume_missed` also when the machine starts.

    Raises ValueError for what cron cannot do.
    """
    if calendar.zone:
        raise ValueError(f"cron knows no time zones: leave {calendar.zone} out; cron uses the machine's own")
    text = shlex.join(command)
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise ValueError("a crontab cannot contain control characters")
    text = text.replace("%", "\\%")
    if len(text) > _LONGEST:
        raise ValueError(f"cron takes commands of up to {_LONGEST} characters: choose a shorter --state")
    # cron counts from Sunday
    every = len(calendar.days) == _ALL
    days = "*" if every else ",".join(str(day) for day in sorted((day + 1) % _ALL for day in calendar.days))
    hours = ",".join(str(hour) for hour in calendar.hours)
    found = [f"{calendar.minute} {hours} * * {days} {text}"]
    return [*found, f"@reboot {text}"] if resume_missed else found


def begin(name: str) -> str:
    """Return the mark before the lines of `name`."""
    return f"# BEGIN plimsoll schedule {name} (written by it: install it again to change it)"


def end(name: str) -> str:
    """Return the mark behind them."""
    return f"# END plimsoll schedule {name}"


def block(text: str, name: str) -> list[str] | None:
    """Return the lines of `name` in the crontab `text`, None where there are none. Raises LabError."""
    found = _span(text, name)
    return None if found is None else text[slice(*found)].splitlines()[1:-1]


def names(text: str) -> list[str]:
    """Return the names of the timers in the crontab `text`."""
    return re.findall(r"^# BEGIN plimsoll schedule ([A-Za-z0-9_.-]+) ", text, re.MULTILINE)


def without(text: str, name: str) -> str:
    """Return the crontab `text` without the lines of `name`. Raises LabError."""
    found = _span(text, name)
    return text if found is None else text[: found[0]] + text[found[1] :]


def with_lines(text: str, name: str, wanted: Sequence[str]) -> str:
    """Return the crontab `text` with the lines of `name`: where they stood, else last. Raises LabError."""
    new = "".join(f"{line}\n" for line in [begin(name), *wanted, end(name)])
    found = _span(text, name)
    if found is not None:
        return text[: found[0]] + new + text[found[1] :]
    return text + ("\n" if text and not text.endswith("\n") else "") + new


def _span(text: str, name: str) -> tuple[int, int] | None:
    starts = [found.start() for found in re.finditer(rf"^{re.escape(begin(name))}\n", text, re.MULTILINE)]
    ends = [found.end() for found in re.finditer(rf"^{re.escape(end(name))}(?:\n|\Z)", text, re.MULTILINE)]
    if not starts and not ends:
        return None
    if len(starts) != 1 or len(ends) != 1 or ends[0] <= starts[0]:
        raise LabError(
            f"crontab: the marks of plimsoll schedule {name} are damaged: delete them and the lines "
            "between them with crontab -e"
        )
    return starts[0], ends[0]
