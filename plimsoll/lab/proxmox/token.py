"""The API token, from the environment or from a file that only its owner can read."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from plimsoll.common.errors import SettingsError
from plimsoll.lab.errors import LabError
from plimsoll.scenarios.running.clonelist import secret_in

ID_NAME, SECRET_NAME = "PLIMSOLL_PROXMOX_TOKEN_ID", "PLIMSOLL_PROXMOX_TOKEN_SECRET"
_ID = re.compile(r"([^\s:/!=@]+@[A-Za-z][A-Za-z0-9._-]*)!([A-Za-z][A-Za-z0-9._-]*)")
_SECRET = re.compile(r"[!-~]{8,200}")
_FORM = "must be USER@REALM!NAME, such as lab@pve!plimsoll"


@dataclass(frozen=True)
class Token:
    """A user's API token. Its secret shows in no representation."""

    user: str
    name: str
    secret: str = field(repr=False)

    @property
    def id(self) -> str:
        """Proxmox's name for it, also in its lists of tasks."""
        return f"{self.user}!{self.name}"


def token(file: Path | None, environment: Mapping[str, str] = os.environ) -> Token:
    """Return the token in `file`, or without one of the environment. Raises LabError with all problems."""
    if file is None:
        where, wheres = ID_NAME, SECRET_NAME
        text, secret = environment.get(ID_NAME, ""), environment.get(SECRET_NAME, "")
        unset = [name for name, value in ((where, text), (wheres, secret)) if not value]
        if unset:
            raise LabError(f"set {' and '.join(unset)}, or set token_file, to log in to Proxmox's API")
    else:
        where = wheres = f"token_file: {file}"
        try:
            text, _, secret = secret_in(file, "token_file").partition("=")
        except SettingsError as error:
            raise LabError(str(error)) from None
        if not secret:
            raise LabError(f"{where}: its first line must be USER@REALM!NAME=SECRET")
    found = _ID.fullmatch(text)
    problems = [] if found else [f"{where}: {_FORM}"]
    if not _SECRET.fullmatch(secret):
        problems.append(f"{wheres}: the secret must have at least 8 letters, digits or signs, and no spaces")
    if problems or not found:
        raise LabError("\n".join(problems))
    return Token(found[1], found[2], secret)
