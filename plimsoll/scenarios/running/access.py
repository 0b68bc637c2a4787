"""What a guarded site asks for before it shows anything: headers, a password, cookies, a certificate.

All of it comes from files that only their owner can read, stays in memory, and goes to the target alone.
"""

import base64
import re
import ssl
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import REDACTED

# The settings that name such files; none of their paths is kept.
ACCESS_FILES = ("header_file", "basic_auth_file", "cookie_file", "client_cert", "client_key")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2: a token
_VALUE = re.compile(r"[\t\x20-\x7e]*")
_COOKIE_VALUE = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*")  # RFC 6265, 4.1.1: cookie-octet
_OURS = {
    "cookie": "put cookies into a separate file, and give --cookie-file",
    **dict.fromkeys(
        ("host", "content-length", "transfer-encoding", "connection"), "each request has its own"
    ),
}
_SHORTEST = 6  # of secrets that are taken out of what is kept: shorter ones stand in many a word
_NETSCAPE_FIELDS = 7  # domain, subdomains, path, secure, expires, name, value
_LARGEST_BYTES = 1 << 20  # of a file of secrets
Pairs = tuple[tuple[str, str], ...]


class AccessSettings(Protocol):
    """The settings that `access_of` reads."""

    @property
    def target(self) -> str: ...  # noqa: D102
    @property
    def header_file(self) -> Path | None: ...  # noqa: D102
    @property
    def basic_auth_file(self) -> Path | None: ...  # noqa: D102
    @property
    def cookie_file(self) -> Path | None: ...  # noqa: D102
    @property
    def client_cert(self) -> Path | None: ...  # noqa: D102
    @property
    def client_key(self) -> Path | None: ...  # noqa: D102


@dataclass(frozen=True)
class SiteAccess:
    """What goes with every request to the target; none of it shows in any representation.

    `headers` include that of the password; `certificate` is of paths: the certificate's and the key's.
    """

    headers: Pairs = field(default=(), repr=False)
    cookies: Pairs = field(default=(), repr=False)
    certificate: tuple[str, str] | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def hide_secrets(self, text: str) -> str:
        """Return `text` without the secrets: sites show what they were sent."""
        return hide_secrets(text, self.secrets)


def hide_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return `text` without `secrets`; empty ones do not count. Pure."""
    for secret in secrets:
        text = text.replace(secret, REDACTED) if secret else text
    return text


def read_access(settings: AccessSettings) -> SiteAccess:
    """Read the files that `settings` name. Raises SettingsError for the first that cannot be used."""
    headers = read_headers(settings.header_file) if settings.header_file else ()
    host = urlsplit(settings.target).hostname
    cookies = read_cookies(settings.cookie_file, host) if settings.cookie_file else ()
    secrets = [value for _, value in (*headers, *cookies)]
    secrets += [word for _, value in headers for word in value.split()]  # without its Bearer
    if settings.basic_auth_file:
        user_and_password = read_basic_auth(settings.basic_auth_file)
        coded = base64.b64encode(user_and_password.encode()).decode()
        headers += (("Authorization", f"Basic {coded}"),)
        secrets += [coded, user_and_password, user_and_password.partition(":")[2]]
    certificate = None
    if settings.client_cert:
        certificate = (str(settings.client_cert), str(settings.client_key or settings.client_cert))
    long_enough = {secret for secret in secrets if len(secret) >= _SHORTEST}
    return SiteAccess(headers, cookies, certificate, tuple(sorted(long_enough, key=len, reverse=True)))


def script_access(access: SiteAccess) -> dict[str, Any]:
    """Return what k6/access.js reads: headers, cookies, and the texts of certificate and key.

    Raises SettingsError for files that have disappeared since they were checked.
    """
    cert, key = access.certificate or (None, None)
    return {
        "headers": dict(access.headers),
        "cookies": dict(access.cookies),
        "cert": certificate_text(Path(cert)) if cert else "",
        "key": secret_text(Path(key)) if key else "",
    }


def read_headers(path: Path) -> Pairs:
    """Return the headers in `path`, one `Name: value` a line; `#` begins a comment. Raises SettingsError."""
    headers: list[tuple[str, str]] = []
    for number, line in _lines(path):
        name, colon, value = line.partition(":")
        if not colon or not _NAME.fullmatch(name):
            raise SettingsError(f"{path}, line {number} is not a header: write Name: value")
        value = value.strip()
        if not value or not _VALUE.fullmatch(value):
            raise SettingsError(f"{path}, line {number}: the value of {name} must be ASCII text")
        if remedy := _OURS.get(name.lower()):
            raise SettingsError(f"{path}, line {number}: {name} cannot be set: {remedy}")
        if name.lower() in (other.lower() for other, _ in headers):
            raise SettingsError(f"{path}, line {number}: {name} is set twice")
        headers.append((name, value))
    if not headers:
        raise SettingsError(f"{path} has no header: write one Name: value per line")
    return tuple(headers)


def read_basic_auth(path: Path) -> str:
    """Return `user:password`, the first line of `path`. Raises SettingsError."""
    line = read_first_line(path)
    user, colon, _ = line.partition(":")
    if not colon or not user:
        raise SettingsError(f"the first line of {path} must be user:password")
    return line


def read_cookies(path: Path, host: str | None = None) -> Pairs:
    """Return the cookies in `path`: a `name=value` a line, or the cookies.txt that curl and browsers write.

    Those of a cookies.txt that have expired are left out, and, where `host` is given, those of other hosts.
    Raises SettingsError.
    """
    cookies: dict[str, str] = {}
    expired = others = 0
    for number, line in _lines(path, comment=re.compile(r"#(?!HttpOnly_)")):
        columns = line.split("\t")
        if len(columns) == _NETSCAPE_FIELDS:
            name, value, until = columns[5], columns[6], columns[4]
            if until.isdigit() and 0 < int(until) < time.time():
                expired += 1
                continue
            if host is not None and not _is_for_host(columns[0], columns[1], host):
                others += 1
                continue
        else:
            name, equals, value = line.partition("=")
            if not equals:
                raise SettingsError(f"{path}, line {number} is not a cookie: write name=value")
        if not _NAME.fullmatch(name) or not _COOKIE_VALUE.fullmatch(value.strip('"')):
            raise SettingsError(
                f"{path}, line {number} is not a cookie: one name=value, without white space or ;"
            )
        cookies[name] = value
    if not cookies:
        why = f"all {expired} have expired" if expired else "write one name=value per line"
        if others:
            why = f"all {expired + others} are of other hosts, or have expired"
        raise SettingsError(f"{path} has no cookie{f' for {host}' if host else ''}: {why}")
    return tuple(cookies.items())


def _is_for_host(domain: str, subdomains: str, host: str) -> bool:
    """Return True if a cookie of a cookies.txt goes to `host`."""
    name = domain.removeprefix("#HttpOnly_").lstrip(".").lower()
    return host == name or (subdomains == "TRUE" and host.endswith(f".{name}"))


def _lines(path: Path, comment: re.Pattern[str] = re.compile("#")) -> list[tuple[int, str]]:
    """Return the lines of `path` that are neither empty nor comments, with their numbers."""
    numbered = enumerate(secret_text(path).splitlines(), 1)
    return [
        (number, line.strip(" \r")) for number, line in numbered if line.strip() and not comment.match(line)
    ]


def check_certificate(cert: Path, key: Path | None) -> None:
    """Check that `cert` (PEM) and its key, `key` or in the same file, fit. Raises SettingsError."""
    text = secret_text(key or cert) if key or "PRIVATE KEY" in certificate_text(cert) else ""
    if "PRIVATE KEY" not in text:
        where = (
            f"{key} holds no private key" if key else f"{cert} holds no private key: give --client-key FILE"
        )
        raise SettingsError(where)

    def refuse() -> str:
        raise SettingsError(f"{key or cert} asks for a passphrase: give a key without one, chmod 600")

    try:
        ssl.create_default_context().load_cert_chain(cert, key, refuse)
    except (ssl.SSLError, OSError) as error:
        said = error.strerror or getattr(error, "reason", "") or "unknown form"
        raise SettingsError(
            f"{cert} and its key cannot be used: {said}: are they PEM, and of one pair?"
        ) from None


def certificate_text(cert: Path) -> str:
    """Return the text of a certificate, which is not secret. Raises SettingsError."""
    try:
        return cert.read_text(encoding="ascii")
    except OSError as error:
        raise SettingsError(f"{cert} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{cert} is not PEM") from None


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


def read_first_line(path: Path) -> str:
    """Return the first line of `path`. Raises SettingsError where it is empty, too."""
    line = secret_text(path).partition("\n")[0].rstrip("\r")
    if not line:
        raise SettingsError(f"the first line of {path} is empty")
    return line
