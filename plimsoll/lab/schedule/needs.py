"""What a night will need, looked for when it is installed: not in the first night, with nobody there."""

from collections.abc import Iterator
from pathlib import Path

from plimsoll.analysis.regress.changes import need_otava
from plimsoll.common.errors import SettingsError
from plimsoll.lab.schedule.definition import Kind
from plimsoll.lab.schedule.discovery import read_crontab

_DAEMONS = {"cron", "crond", "fcron", "bcron-start", "dcron"}
_PROCESSES = Path("/proc")


def missing(kind: Kind) -> Iterator[str]:
    """Yield what nights of this kind need and this machine has not, with the remedy."""
    try:
        need_otava()
    except SettingsError as error:
        yield str(error)
    if kind != "cron":
        return
    if read_crontab() is None:
        yield "--cron: crontab is not installed, or not allowed: install cron, or use systemd"
    if not cron_runs():
        yield "--cron: no cron daemon runs here: start it (service cron start), or use systemd"


def cron_runs() -> bool:
    """Return whether a cron daemon runs on this machine."""
    for path in _PROCESSES.glob("[0-9]*/comm"):
        try:
            if path.read_text(encoding="utf-8", errors="replace").strip() in _DAEMONS:
                return True
        except OSError:  # it has ended
            continue
    return False
