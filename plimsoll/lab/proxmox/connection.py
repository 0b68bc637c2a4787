"""One request to Proxmox's API: host, certificate and token, and each error with its remedy."""

import os
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import requests
from proxmoxer import ResourceException
from proxmoxer.backends.https import Backend
from proxmoxer.core import ProxmoxResource
from pydantic import AfterValidator, Field, model_validator
from requests.adapters import HTTPAdapter

from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import REDACTED
from plimsoll.lab.errors import LabError
from plimsoll.lab.names import StrictModel
from plimsoll.scenarios.running.clonelist import secret_in

_API = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::(\d{1,5}))?")
_FINGERPRINT = re.compile(r"(?:[0-9A-Fa-f]{2}:){31}[0-9A-Fa-f]{2}")
_NEVER_SENT = ("NewConnectionError", "ConnectTimeoutError", "NameResolutionError")
_FINGERPRINTS = re.compile(r'[Ff]ingerprints did not match\. Expected "\w+", got "(\w+)"')
ID_NAME, SECRET_NAME = "PLIMSOLL_PROXMOX_TOKEN_ID", "PLIMSOLL_PROXMOX_TOKEN_SECRET"
_ID = re.compile(r"([^\s:/!=@]+@[A-Za-z][A-Za-z0-9._-]*)!([A-Za-z][A-Za-z0-9._-]*)")
_SECRET = re.compile(r"[!-~]{8,200}")
_FORM = "must be USER@REALM!NAME, such as lab@pve!plimsoll"
_LONGEST = 240
_LOCKED = re.compile(
    r"(?i)(?:VM|CT) is locked|can't lock file|unable to acquire lock|got lock request timeout"
)
_TAKEN = re.compile(
    r"(?i)unable to create (?:VM|CT) \d+: config file already exists|(?:VM|CT) (?:ID )?\d+ already exists"
)
_GONE = re.compile(
    r"(?i)Configuration file '[^']*' does not exist|no such (?:VM|CT|resource)|(?:VM|CT) \d+ does not exist"
)
_LATER = re.compile(r"(?i)guest agent is not running|agent (?:not|isn't) |got timeout|is not running")
_AT_REST = re.compile(r"(?i)(?:VM|CT) \d+ not running")
_BOUND = re.compile(r"(?i)unable to clone mountpoint '\w+' \(type (?:bind|device)\)")
_RUNS = re.compile(r"(?i)full clone of a running container is only possible from a snapshot")
_NO_SNAPSHOT = re.compile(r"(?i)snapshot feature is not available")


def _api(value: str) -> str:
    found = _API.fullmatch(value)
    if not found or (found[1] and not 0 < int(found[1]) < 65536):
        raise ValueError(
            "must be HOST or HOST:PORT, such as pve1.lan or [2001:db8::1]:8006, without https://"
        )
    return value


def _fingerprint(value: str) -> str:
    if not _FINGERPRINT.fullmatch(value):
        raise ValueError("must be the SHA-256 fingerprint, 32 pairs of digits with colons: 5A:0C:…")
    return value


class ApiSettings(StrictModel):
    """The settings of the API of one Proxmox VE."""

    api: Annotated[str, AfterValidator(_api)] = Field(
        description="Host of the API, with its port unless that is 8006: pve1.lan."
    )
    token_file: Path | None = Field(
        None,
        description="File with USER@REALM!NAME=SECRET on its first line. Only its owner may read it (chmod "
        "600). "
        "Default: PLIMSOLL_PROXMOX_TOKEN_ID and PLIMSOLL_PROXMOX_TOKEN_SECRET.",
    )
    ca_file: Path | None = Field(
        None, description="Authority that signed the API's certificate: a copy of /etc/pve/pve-root-ca.pem."
    )
    fingerprint: Annotated[str, AfterValidator(_fingerprint)] | None = Field(
        None, description="SHA-256 fingerprint of the API's certificate, in place of an authority."
    )
    request_timeout_s: float = Field(
        30.0, gt=0, le=600, description="Seconds to wait for an answer to one request."
    )

    @model_validator(mode="after")
    def _one_proof(self) -> "ApiSettings":
        if self.ca_file and self.fingerprint:
            raise ValueError("give ca_file or fingerprint, not both")
        return self


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


class FaultKind(Enum):
    """The kinds of errors, by what may be done about them."""

    UNREACHED = "the request was never carried out: it may be repeated"
    UNSURE = "it is unknown whether it was carried out: it may be repeated if it changes nothing"
    LOCKED = "another task holds the guest: it may be repeated"
    LATER = "it may succeed once the guest is up"
    TAKEN = "the number belongs to another guest"
    GONE = "the guest does not exist"
    AT_REST = "the guest is not running, so nothing has to be stopped"
    FINAL = "it fails however often it is repeated"


class ApiError(LabError):
    """The API did not do what was asked of it."""

    def __init__(self, message: str, kind: FaultKind = FaultKind.FINAL) -> None:
        super().__init__(message)
        self.kind = kind


class ApiConnection:
    """Asks one API with one token."""

    def __init__(self, settings: ApiSettings, who: Token) -> None:
        self.api, self.token = settings.api, who
        self._timeout_s = settings.request_timeout_s
        backend = Backend(
            settings.api,
            user=who.user,
            token_name=who.name,
            token_value=who.secret,
            verify_ssl=_verify(settings),
            timeout=settings.request_timeout_s,
        )
        session = backend.get_session()
        if settings.fingerprint:
            session.mount("https://", _Pinned(settings.fingerprint))
        self._root = ProxmoxResource(
            base_url=backend.get_base_url(), session=session, serializer=backend.get_serializer()
        )

    def ask(self, method: str, path: str, params: Mapping[str, str]) -> Any:
        """Return the `data` of the answer. Raises ApiError, never with the token's secret in it."""
        try:
            return self._ask(method, path, params)
        except ApiError as error:
            raise ApiError(str(error).replace(self.token.secret, REDACTED), error.kind) from None

    def _ask(self, method: str, path: str, params: Mapping[str, str]) -> Any:
        what = f"{method} {path}"
        resource = self._root(path.strip("/"))
        verb = {"GET": resource.get, "POST": resource.post, "PUT": resource.put, "DELETE": resource.delete}
        try:
            answer = verb[method](**params)
        except ResourceException as error:
            raise answer_error(self.api, what, error.status_code, error.content, error.errors) from None
        except requests.exceptions.RequestException as error:
            raise self._explain_failure(what, error) from None
        except (KeyError, TypeError, AttributeError):
            raise self._no_proxmox(what) from None
        if isinstance(answer, dict) and isinstance(answer.get("errors"), bytes):
            raise self._no_proxmox(what)
        return answer

    def _no_proxmox(self, what: str) -> ApiError:
        return ApiError(
            f"{self.api}: {what}: the answer does not come from Proxmox's API: are host and port right?"
        )

    def _explain_failure(self, what: str, error: requests.exceptions.RequestException) -> ApiError:
        where, causes = f"{self.api}: {what}", list(_causes(error))
        if isinstance(error, requests.exceptions.SSLError):
            return self._explain_distrust(error)
        if any(type(cause).__name__ == "NameResolutionError" for cause in causes):
            return ApiError(f"{self.api}: the host name is unknown: is api right?", FaultKind.UNREACHED)
        if any(type(cause).__name__ in _NEVER_SENT for cause in causes):
            why = next(
                (cause.strerror for cause in causes if isinstance(cause, OSError) and cause.strerror), ""
            )
            return ApiError(
                f"{where}: cannot be reached{f' ({why})' if why else ''}: is pveproxy running there, "
                "is the port right, and does a firewall let it through?",
                FaultKind.UNREACHED,
            )
        if isinstance(error, requests.exceptions.Timeout):
            return ApiError(
                f"{where}: no answer within {self._timeout_s:g} s: raise request_timeout_s, "
                "or check what keeps the node busy",
                FaultKind.UNSURE,
            )
        return ApiError(f"{where}: the connection broke ({one_line(causes[-1])})", FaultKind.UNSURE)

    def _explain_distrust(self, error: requests.exceptions.SSLError) -> ApiError:
        if found := _FINGERPRINTS.search(str(error)):
            digits = found[1].upper()
            fingerprint = ":".join(digits[i : i + 2] for i in range(0, len(digits), 2))
            return ApiError(
                f"{self.api}: its certificate does not match fingerprint "
                f"(it is {fingerprint}): was it renewed, or does another machine answer?"
            )
        why = next(
            (cause for cause in _causes(error) if isinstance(cause, ssl.SSLCertVerificationError)), None
        )
        if why is None:
            return ApiError(f"{self.api}: it does not speak HTTPS: are host and port right?")
        return ApiError(
            f"{self.api}: its certificate cannot be verified ({one_line(why.verify_message)}): give ca_file "
            "(a copy of the node's /etc/pve/pve-root-ca.pem), or fingerprint (pvenode cert info)"
        )


def connect(settings: ApiSettings, environment: Mapping[str, str] = os.environ) -> ApiConnection:
    """Return a connection with the token that there is. Raises LabError; nothing is asked yet."""
    return ApiConnection(settings, token(settings.token_file, environment))


def _verify(settings: ApiSettings) -> bool | str:
    if settings.fingerprint:
        return False  # the fingerprint is looked at instead: see _Pinned
    if settings.ca_file is None:
        return True
    try:
        with settings.ca_file.open("rb"):
            return str(settings.ca_file)
    except OSError as error:
        raise ApiError(f"ca_file: {settings.ca_file} cannot be read: {error.strerror}") from None


class _Pinned(HTTPAdapter):
    """Connects only to a server whose certificate has this fingerprint."""

    def __init__(self, fingerprint: str) -> None:
        self._fingerprint = fingerprint
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs, assert_fingerprint=self._fingerprint)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        return super().proxy_manager_for(proxy, **kwargs, assert_fingerprint=self._fingerprint)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    waiting: list[Any] = [error]
    while waiting:
        cause = waiting.pop(0)
        if isinstance(cause, BaseException) and cause not in seen:
            seen.append(cause)
            waiting += [getattr(cause, "reason", None), cause.__cause__, cause.__context__, *cause.args]
            yield cause


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


def answer_error(api: str, what: str, status: int, reason: str, errors: object = None) -> ApiError:
    """Return the error for an answer of `status`; `reason` is its status line, `errors` go by parameter."""
    said = one_line(reason) or f"status {status}"
    if isinstance(errors, dict) and "errors" not in errors:
        said = "; ".join([said, *(f"{one_line(key)}: {one_line(text)}" for key, text in errors.items())])
    where = f"{api}: {what}"
    if status == 401:
        return ApiError(
            f"{where}: the API token is not accepted ({said}): "
            "is it complete, does it exist, and is it still valid?"
        )
    if status == 403:
        return ApiError(
            f"{where}: the API token may not do this ({said}): grant it the privilege there, "
            "or create it without privilege separation; docs/proxmox.md has the list"
        )
    if status == 595:
        return ApiError(
            f"{where}: the API host cannot reach the node ({said}): is it on, and does the cluster have "
            "quorum?",
            FaultKind.UNREACHED,
        )
    if status in (502, 503, 596, 597, 598, 599):
        return ApiError(f"{where}: the node's answer broke off ({said})", FaultKind.UNSURE)
    return of_message(where, said)


def of_message(where: str, said: str) -> ApiError:
    """Return the error for the message of an answer, or of a task that failed."""
    if _LOCKED.search(said):
        return ApiError(
            f"{where}: {said}: wait for the task that holds the lock, or stop it; "
            "if no task holds the lock, remove it with qm unlock VMID (pct unlock VMID for a container) "
            "on the node",
            FaultKind.LOCKED,
        )
    if _TAKEN.search(said):
        return ApiError(f"{where}: {said}", FaultKind.TAKEN)
    if _GONE.search(said):
        return ApiError(f"{where}: {said}: are node and number right?", FaultKind.GONE)
    if _AT_REST.search(said):
        return ApiError(f"{where}: {said}", FaultKind.AT_REST)
    if _BOUND.search(said):
        return ApiError(
            f"{where}: {said}: Proxmox clones volumes only: take that mount point out of the template, or "
            "make it a volume of a storage"
        )
    if _RUNS.search(said):
        return ApiError(f"{where}: {said}: shut it down, or make it a template")
    if _NO_SNAPSHOT.search(said):
        return ApiError(f"{where}: {said}: this storage has no snapshots: set restore: clone")
    if _LATER.search(said):
        return ApiError(f"{where}: {said}", FaultKind.LATER)
    return ApiError(f"{where}: {said}")


def task_error(where: str, exit_status: str, log: list[str]) -> ApiError:
    """Return the error for a task that ended with `exit_status`; `log` are its last lines."""
    error = of_message(f"{where}: the task failed", one_line(exit_status) or "without saying why")
    lines = " | ".join(line for line in map(one_line, log) if line)
    return ApiError(f"{error} (its log ends: {lines})" if lines else str(error), error.kind)


def one_line(text: object) -> str:
    """Return a stranger's text as one line that may be printed."""
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
