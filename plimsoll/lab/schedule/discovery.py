"""Finds what is installed of a timer, and the kinds of timer that this machine can have."""

import os
import subprocess
from pathlib import Path

from plimsoll.common.errors import SettingsError
from plimsoll.lab.errors import LabError
from plimsoll.lab.schedule import crontab, units
from plimsoll.lab.schedule.definition import Kind, Timer, TimerFolders, read
from plimsoll.lab.schedule.plan import InstalledTimer

_CRONTAB_S = 60.0
_KINDS: tuple[Kind, ...] = ("system", "user")


def look(name: str, place: TimerFolders) -> InstalledTimer:
    """Return the installed parts of the timer `name`. Raises LabError where the crontab cannot be read."""
    found: dict[Kind, list[Path]] = {}
    foreign: list[Path] = []
    for kind in _kinds():
        found[kind] = []
        for path in place.unit_files(kind, name):
            if path.is_symlink() or path.exists():
                (found[kind] if _ours(path) else foreign).append(path)
    schedule: Timer | None = None
    if (place.folder(name) / "schedule.json").exists():
        try:
            schedule = read(place, name)
        except SettingsError:
            schedule = None  # to be rewritten, or removed
    return InstalledTimer(found, foreign, read_crontab(), schedule)


def read_crontab() -> str | None:
    """Return this user's crontab: empty if there is none, None if it is not allowed. Raises LabError."""
    try:
        done = subprocess.run(["crontab", "-l"], capture_output=True, check=False, timeout=_CRONTAB_S)  # noqa: S607
    except FileNotFoundError:
        return None
    except subprocess.TimeoutExpired:
        raise LabError(
            f"crontab -l: did not end within {_CRONTAB_S:g} s: try it by hand, then again"
        ) from None
    if done.returncode and b"not allowed" in done.stderr:  # by cron.allow or cron.deny
        return None
    if done.returncode and b"no crontab for" not in done.stderr:
        said = done.stderr.decode(errors="replace").strip()
        raise LabError(f"crontab -l: ended with {done.returncode}: {said}")
    return "" if done.returncode else done.stdout.decode(errors="surrogateescape")


def kind_here(dry_run: bool = False) -> Kind:
    """Return the kind that suits: systemd's where it runs, else cron, to be shown (`dry_run`) or installed.

    Raises SettingsError.
    """
    booted = Path("/run/systemd/system").is_dir()
    if booted and os.geteuid() == 0:
        return "system"
    runtime = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.geteuid()}")
    if booted and (Path(runtime) / "systemd").is_dir():
        return "user"
    if dry_run or read_crontab() is not None:
        return "cron"
    raise SettingsError(
        "neither systemd nor cron runs here: install cron, or choose --user, --system or --cron"
    )


def names(place: TimerFolders) -> list[str]:
    """Return the names of all timers with anything installed: definitions, units, lines in the crontab."""
    found = set(place.names)
    for kind in _kinds():
        for path in place.units(kind).glob(f"{units.unit('*')}.*"):
            if path.suffix in (".service", ".timer") and _ours(path):
                found.add(path.stem.removeprefix(units.unit("")))
    return sorted(found | set(crontab.names(read_crontab() or "")))


def _kinds() -> tuple[Kind, ...]:
    """Return the kinds of units that this user can see: only root sees the system's."""
    return _KINDS if os.geteuid() == 0 else ("user",)


def _ours(path: Path) -> bool:
    try:
        return path.read_text(encoding="utf-8", errors="replace").startswith(units.MARK)
    except OSError:
        return False
