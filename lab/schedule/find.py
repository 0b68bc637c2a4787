"""Looks for what there is of a schedule, and which kind of schedule this machine can have."""

import os
import subprocess
from pathlib import Path

from analysis.errors import SettingsError
from lab.errors import LabError
from lab.schedule import crontab, units
from lab.schedule.definition import Kind, Places, Schedule, read
from lab.schedule.plan import Found

_KINDS: tuple[Kind, ...] = ("system", "user")


def look(name: str, place: Places) -> Found:
    """Return what is there of the schedule `name`. Raises LabError where the crontab cannot be read."""
    found: dict[Kind, list[Path]] = {}
    foreign: list[Path] = []
    for kind in _kinds():
        found[kind] = []
        for path in place.unit_files(kind, name):
            if path.is_symlink() or path.exists():
                (found[kind] if _ours(path) else foreign).append(path)
    schedule: Schedule | None = None
    if (place.folder(name) / "schedule.json").exists():
        try:
            schedule = read(place, name)
        except SettingsError:
            schedule = None  # to be written anew, or removed
    return Found(found, foreign, read_crontab(), schedule)


def read_crontab() -> str | None:
    """Return this user's crontab: empty where there is none, None where we may have none. Raises LabError."""
    try:
        done = subprocess.run(["crontab", "-l"], capture_output=True, check=False, timeout=60)  # noqa: S607
    except FileNotFoundError:
        return None
    if done.returncode and b"not allowed" in done.stderr:  # by cron.allow or cron.deny
        return None
    if done.returncode and b"no crontab for" not in done.stderr:
        said = done.stderr.decode(errors="replace").strip()
        raise LabError(f"crontab -l: ended with {done.returncode}: {said}")
    return "" if done.returncode else done.stdout.decode(errors="surrogateescape")


def kind_here() -> Kind:
    """Return the kind that suits: systemd's where it runs, else cron. Raises SettingsError."""
    booted = Path("/run/systemd/system").is_dir()
    if booted and os.geteuid() == 0:
        return "system"
    runtime = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.geteuid()}")
    if booted and (Path(runtime) / "systemd").is_dir():
        return "user"
    if read_crontab() is not None:
        return "cron"
    raise SettingsError(
        "neither systemd nor cron runs here: install cron, or choose --user, --system or --cron"
    )


def names(place: Places) -> list[str]:
    """Return all schedules of which anything is there: what is known, units, lines in the crontab."""
    found = set(place.names)
    for kind in _kinds():
        for path in place.units(kind).glob(f"{units.unit('*')}.*"):
            if path.suffix in (".service", ".timer") and _ours(path):
                found.add(path.stem.removeprefix(units.unit("")))
    return sorted(found | set(crontab.names(read_crontab() or "")))


def _kinds() -> tuple[Kind, ...]:
    """Units of the system are root's affair."""
    return _KINDS if os.geteuid() == 0 else ("user",)


def _ours(path: Path) -> bool:
    try:
        return path.read_text(encoding="utf-8", errors="replace").startswith(units.MARK)
    except OSError:
        return False
