"""The environment that a night adds to its own for the experiment: passwords, a longer PATH."""

import re
import stat
from collections.abc import Mapping
from pathlib import Path

from plimsoll.common.errors import SettingsError

_FORM = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)")
_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


def read_environment(path: Path) -> dict[str, str]:
    """Return the variables that `path` sets, one `NAME=VALUE` a line, unchanged; none if there is no file.

    Raises SettingsError with all problems; no message shows a value.
    """
    try:
        mode = path.stat().st_mode
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise SettingsError(f"{path}: is readable by others; run: chmod 600 {path}")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: is not UTF-8 text") from None
    found, problems = {}, []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if (match := _FORM.fullmatch(line.rstrip("\r"))) and "\0" not in line:
            found[match[1]] = match[2]
        else:
            problems.append(f"{path}:{number}: must be NAME=VALUE, or begin with #")
    if problems:
        raise SettingsError("\n".join(problems))
    return found


def environment(base: Mapping[str, str], further: Mapping[str, str]) -> dict[str, str]:
    """Return `base` with `further`, and with the usual folders in PATH: cron has but two. Pure."""
    found = {**base, **further}
    path = [folder for folder in found.get("PATH", "").split(":") if folder]
    found["PATH"] = ":".join([*path, *(folder for folder in _PATH if folder not in path)])
    return found
