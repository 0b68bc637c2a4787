"""One request to Proxmox's API by proxmoxer, and its answer or a sentence. It waits: ask in a thread."""

import os
import re
import ssl
from collections.abc import Iterator, Mapping
from typing import Any

import requests
from proxmoxer import ResourceException
from proxmoxer.backends.https import Backend
from proxmoxer.core import ProxmoxResource
from requests.adapters import HTTPAdapter

from plimsoll.common.hostile import REDACTED
from plimsoll.lab.proxmox.errors import ApiError, FaultKind, answered, plain
from plimsoll.lab.proxmox.settings import ApiSettings
from plimsoll.lab.proxmox.token import Token, token

_NEVER_SENT = ("NewConnectionError", "ConnectTimeoutError", "NameResolutionError")
_FINGERPRINTS = re.compile(r'[Ff]ingerprints did not match\. Expected "\w+", got "(\w+)"')


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
            return self._asked(method, path, params)
        except ApiError as error:
            raise ApiError(str(error).replace(self.token.secret, REDACTED), error.kind) from None

    def _asked(self, method: str, path: str, params: Mapping[str, str]) -> Any:
        what = f"{method} {path}"
        resource = self._root(path.strip("/"))
        verb = {"GET": resource.get, "POST": resource.post, "PUT": resource.put, "DELETE": resource.delete}
        try:
            answer = verb[method](**params)
        except ResourceException as error:
            raise answered(self.api, what, error.status_code, error.content, error.errors) from None
        except requests.exceptions.RequestException as error:
            raise self._failed(what, error) from None
        except (KeyError, TypeError, AttributeError):
            raise self._no_proxmox(what) from None
        if isinstance(answer, dict) and isinstance(answer.get("errors"), bytes):
            raise self._no_proxmox(what)
        return answer

    def _no_proxmox(self, what: str) -> ApiError:
        return ApiError(
            f"{self.api}: {what}: the answer does not come from Proxmox's API: are host and port right?"
        )

    def _failed(self, what: str, error: requests.exceptions.RequestException) -> ApiError:
        """Return the sentence for a request that was not answered."""
        where, causes = f"{self.api}: {what}", list(_causes(error))
        if isinstance(error, requests.exceptions.SSLError):
            return self._untrusted(error)
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
        return ApiError(f"{where}: the connection broke ({plain(causes[-1])})", FaultKind.UNSURE)

    def _untrusted(self, error: requests.exceptions.SSLError) -> ApiError:
        if found := _FINGERPRINTS.search(str(error)):
            return ApiError(
                f"{self.api}: its certificate does not match fingerprint "
                f"(it is {_with_colons(found[1])}): was it renewed, or does another machine answer?"
            )
        why = next(
            (cause for cause in _causes(error) if isinstance(cause, ssl.SSLCertVerificationError)), None
        )
        if why is None:
            return ApiError(f"{self.api}: it does not speak HTTPS: are host and port right?")
        return ApiError(
            f"{self.api}: its certificate cannot be verified ({plain(why.verify_message)}): give ca_file "
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
    """Yield `error` and what lies below it."""
    seen: list[BaseException] = []
    waiting: list[Any] = [error]
    while waiting:
        cause = waiting.pop(0)
        if isinstance(cause, BaseException) and cause not in seen:
            seen.append(cause)
            waiting += [getattr(cause, "reason", None), cause.__cause__, cause.__context__, *cause.args]
            yield cause


def _with_colons(digits: str) -> str:
    return ":".join(digits[i : i + 2] for i in range(0, len(digits), 2)).upper()
