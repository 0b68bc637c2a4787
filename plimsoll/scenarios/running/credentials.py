"""Accounts, with passwords from the environment or from a file that only its owner can read."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from plimsoll.scenarios.running.clonelist import DEFAULT, Clone, config_of
from plimsoll.scenarios.running.errors import SettingsError
from plimsoll.scenarios.running.secretfile import first_line_of
from plimsoll.scenarios.running.settings import AccountSettings


@dataclass(frozen=True)
class Credentials:
    """An account; its password shows in no representation.

    `login_path` is where the form to log in with it is, None where the site usually has it.
    """

    user: str
    password: str = field(repr=False)
    login_path: str | None = None


def credentials(settings: AccountSettings, environment: Mapping[str, str] = os.environ) -> Credentials:
    """Return the account of `settings`; where they and the environment have none, the listed clone's.

    Raises SettingsError that names all that is missing.
    """
    problems: list[str] = []
    user = settings.user or environment.get("PLIMSOLL_USER", "")
    file = settings.password_file
    if listed := _listed(settings):
        user = user or listed.user or ""
        if file is None and user == listed.user and not environment.get("PLIMSOLL_PASSWORD"):
            beside = (getattr(settings, "site_config", None) or DEFAULT).parent
            file = beside / listed.password_file if listed.password_file else None
    if not user:
        problems.append("user: is missing; set --user or PLIMSOLL_USER")
    password = ""
    try:
        password = _password(file, environment)
    except SettingsError as error:
        problems.append(str(error))
    if problems:
        raise SettingsError("\n".join(problems))
    return Credentials(user, password, getattr(settings, "login_path", None))


def _listed(settings: AccountSettings) -> Clone | None:
    """Return the clone of plimsoll.yml that the settings lead to. Raises SettingsError."""
    config = getattr(settings, "site_config", None)
    return config_of(config).of(settings.target, settings.connect_to)


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
        return first_line_of(path)
    except SettingsError as error:
        raise SettingsError(f"{key}: {error}") from None
