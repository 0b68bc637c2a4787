"""Accounts, with passwords from the environment or from a file that only its owner can read."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scenarios.running.errors import SettingsError
from scenarios.running.settings import AccountSettings


@dataclass(frozen=True)
class Credentials:
    """An account; its password shows in no representation."""

    user: str
    password: str = field(repr=False)


def credentials(settings: AccountSettings, environment: Mapping[str, str] = os.environ) -> Credentials:
    """Return the account of `settings`. Raises SettingsError that names all that is missing."""
    problems: list[str] = []
    user = settings.user or environment.get("PLIMSOLL_USER", "")
    if not user:
        problems.append("user: is missing; set --user or PLIMSOLL_USER")
    password = ""
    try:
        password = _password(settings.password_file, environment)
    except SettingsError as error:
        problems.append(str(error))
    if problems:
        raise SettingsError("\n".join(problems))
    return Credentials(user, password)


def _password(path: Path | None, environment: Mapping[str, str]) -> str:
    if path is None:
        if password := environment.get("PLIMSOLL_PASSWORD"):
            return password
        raise SettingsError("password: is missing; set PLIMSOLL_PASSWORD or --password-file")
    return secret_in(path)


def secret_in(path: Path, key: str = "password_file") -> str:
    """Return the first line of `path`, which the setting `key` names.

    Raises SettingsError if others may read the file, or it is empty.
    """
    try:
        mode = path.stat().st_mode
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise SettingsError(f"{key}: {path} is readable by others; run: chmod 600 {path}")
        line = path.read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
    except OSError as error:
        raise SettingsError(f"{key}: {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{key}: {path} is not UTF-8 text") from None
    if not line:
        raise SettingsError(f"{key}: the first line of {path} is empty")
    return line
