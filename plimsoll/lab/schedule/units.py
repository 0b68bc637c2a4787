"""The texts of the systemd units, and the words in them. Pure."""

import re
from collections.abc import Sequence
from datetime import date, tzinfo

from plimsoll.lab.schedule.calendar import Calendar, gaps

MARK = "# Written by plimsoll schedule: install it again to change it, or add to it with systemctl edit."
YEARS = 10  # ahead for which the timer names the nights that the clocks leave out
STOP_S = 900  # for an experiment to remove its clones before it is killed
_UNSAFE_PROGRAM = re.compile(r"[\"'\\\x00-\x1f\x7f]")  # what systemd refuses in a program's path
_ESCAPES = {"\\": "\\\\", '"': '\\"', "%": "%%"}

# Nothing here may give the service mounts of its own (PrivateTmp, ProtectSystem and the like do): what an
# experiment mounts would be hidden from Docker, which serves clones from there. Nor may a user's be
# kept from new privileges, since the lab becomes root by sudo.
_SYSTEM_ONLY = """\
NoNewPrivileges=yes
LockPersonality=yes
SystemCallArchitectures=native
CapabilityBoundingSet=~CAP_SYS_BOOT CAP_SYS_TIME CAP_WAKE_ALARM CAP_MAC_ADMIN CAP_MAC_OVERRIDE CAP_SYSLOG
"""


def unit(name: str) -> str:
    """Return the name of the units of the timer `name`, without .service or .timer."""
    return f"plimsoll-{name}"


def service(name: str, command: Sequence[str], system: bool) -> str:
    """Return the service that runs `command`; `system`: root's, not a user's."""
    network = "Wants=network-online.target\nAfter=network-online.target\n" if system else ""
    return f"""{MARK}
[Unit]
Description=Plimsoll: tonight's run of {name}
{network}
[Service]
Type=oneshot
ExecStart={exec_start(command)}
TimeoutStartSec=infinity
# To stop it is as Ctrl-C: the experiment removes its clones, and the next night goes on with it.
KillMode=mixed
KillSignal=SIGINT
TimeoutStopSec={STOP_S}
UMask=0022
{_SYSTEM_ONLY if system else ""}"""


def timer(name: str, calendar: Calendar, zone: tzinfo, first: date, resume_missed: bool) -> str:
    """Return the timer. `first`: the day from which nights that the clocks leave out are named."""
    instead = [
        f"OnCalendar={local:%Y-%m-%d %H:%M}:00{f' {calendar.zone}' if calendar.zone else ''}\n"
        for local in gaps(calendar, zone, first, YEARS)
    ]
    said = "# These nights have no such time, since the clocks go forward:\n" if instead else ""
    return f"""{MARK}
[Unit]
Description=Plimsoll: nights of {name}

[Timer]
OnCalendar={calendar}
{said}{"".join(instead)}AccuracySec=1s
RandomizedDelaySec=0
Persistent={"yes" if resume_missed else "no"}

[Install]
WantedBy=timers.target
"""


def exec_start(command: Sequence[str]) -> str:
    """Return `command` for ExecStart=, each word to arrive as it is.

    The colon keeps systemd from reading `$`; a program whose path it would refuse is started by env. Raises
    ValueError for control characters, which no unit file can hold.
    """
    words = list(command)
    if any(re.search(r"[\x00-\x1f\x7f]", word) for word in words):
        raise ValueError("a unit cannot contain control characters")
    if _UNSAFE_PROGRAM.search(words[0]):
        words.insert(0, "/usr/bin/env")
    return " ".join([quoted(":" + words[0]), *(quoted(word) for word in words[1:])])


def quoted(word: str) -> str:
    """Return `word` in quotes where systemd needs them, without specifiers."""
    escaped = "".join(_ESCAPES.get(c, c) for c in word)
    return escaped if re.fullmatch(r"[A-Za-z0-9_@%+=:,./-]+", escaped) else f'"{escaped}"'
