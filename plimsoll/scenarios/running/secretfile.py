"""Files that hold secrets: read only where nobody but their owner can."""

import stat
from pathlib import Path

from plimsoll.scenarios.running.errors import SettingsError

_LARGEST_BYTES = 1 << 20


def secret_text(path: Path) -> str:
    """Return the text of `path`. Raises SettingsError with the remedy, and never with what is in the file."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise SettingsError(f"{path} is not a file")
        if about.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise SettingsError(f"{path} is readable by others; run: chmod 600 {path}")
        if about.st_size > _LARGEST_BYTES:
            raise SettingsError(f"{path} is larger than {_LARGEST_BYTES >> 20} MiB: is it the right file?")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is not UTF-8 text") from None


def first_line_of(path: Path) -> str:
    """Return the first line of `path`. Raises SettingsError where it is empty, too."""
    line = secret_text(path).partition("\n")[0].rstrip("\r")
    if not line:
        raise SettingsError(f"the first line of {path} is empty")
    return line
