"""The token that opens the folder to a browser: from a file or the environment, never from a command line."""

import hashlib
import hmac
import stat
from collections.abc import Mapping
from pathlib import Path

from plimsoll.common.errors import SettingsError

NAME = "PLIMSOLL_SERVE_TOKEN"
_SHORTEST = 16  # characters: nobody guesses as many


def read_token(file: Path | None, environment: Mapping[str, str]) -> str | None:
    """Return the token that was given, None where none was. Raises SettingsError."""
    where = NAME if file is None else f"--token-file: {file}"
    token = environment.get(NAME, "").strip() if file is None else _secret(file)
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


def _secret(path: Path) -> str:
    try:
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise SettingsError(f"--token-file: {path} is open to others; run: chmod 600 {path}")
        return path.read_text(encoding="utf-8").partition("\n")[0].strip()
    except OSError as error:
        raise SettingsError(f"--token-file: {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"--token-file: {path} is no UTF-8 text") from None
