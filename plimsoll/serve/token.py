"""The token that opens the folder to a browser: from a file or the environment, never from a command line."""

import hashlib
import hmac
from collections.abc import Mapping
from pathlib import Path

from plimsoll.common.errors import SettingsError
from plimsoll.common.files import read_secret

NAME = "PLIMSOLL_SERVE_TOKEN"
_SHORTEST = 16  # characters: nobody guesses as many


def read_token(file: Path | None, environment: Mapping[str, str]) -> str | None:
    """Return the token that was given, None where none was. Raises SettingsError."""
    where = NAME if file is None else f"--token-file: {file}"
    token = environment.get(NAME, "").strip() if file is None else read_secret("--token-file", file)
    if not token and file is None:
        return None
    if len(token) < _SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise SettingsError(
            f"{where}: must hold a token of {_SHORTEST} or more letters and digits; make one: "
            "openssl rand -hex 24"
        )
    return token


def session_of(token: str) -> str:
    """Return what the browser keeps instead of the token: the same after a restart. Pure."""
    return hmac.new(token.encode(), b"plimsoll serve", hashlib.sha256).hexdigest()


def is_same(given: str, wanted: str) -> bool:
    """Return whether two secrets are one, in a time that does not tell where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())
