"""A secret in the first line of a file that only its owner may read."""

import stat
from pathlib import Path

from plimsoll.common.errors import SettingsError


def secret_line(option: str, path: Path) -> str:
    """Return the first line of `path`, which `option` named.

    Raises SettingsError if others may read it, or it cannot be read.
    """
    try:
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise SettingsError(f"{option}: {path} is open to others; run: chmod 600 {path}")
        return path.read_text(encoding="utf-8").partition("\n")[0].strip()
    except OSError as error:
        raise SettingsError(f"{option}: {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{option}: {path} is no UTF-8 text") from None
