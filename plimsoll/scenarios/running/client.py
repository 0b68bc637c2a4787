"""A browser's share of HTTP: cookies, one site, every request timed and reported."""

import re
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
import urllib3

from plimsoll.scenarios.running.access import access_of
from plimsoll.scenarios.running.connect import ConnectTimer, TimedAdapter
from plimsoll.scenarios.running.consent import origin
from plimsoll.scenarios.running.errors import StepFailedError
from plimsoll.scenarios.running.recognition import Trouble, trouble
from plimsoll.scenarios.running.reply import Reply
from plimsoll.scenarios.running.settings import SiteSettings
from plimsoll.scenarios.running.transport import error_kind

AGENT = "Mozilla/5.0 (X11; Linux x86_64) Plimsoll"
_CHUNK = 1 << 16
_LONGEST_CONNECT_S = 30.0
_PORT = re.compile(r":[0-9]*$")

Check = Callable[[Reply], Trouble | None]
Chunk = Callable[[int, bytes], None]  # monotonic_ns, bytes


@dataclass(frozen=True)
class Sent:
    """One request and its outcome; `start_ns` is of the monotonic clock."""

    step: str
    method: str
    url: str
    start_ns: int
    total_us: int
    ttfb_us: int
    connect_us: int
    bytes: int
    status: int
    error: str
    detail: str
    server_cpu_ms: float | None
    due_ns: int = 0  # of the monotonic clock; 0: due when it started


@dataclass
class _Exchange:
    """A request under way; instants of the monotonic clock, 0 until they are known."""

    start_ns: int = 0
    first_ns: int = 0
    done_ns: int = 0
    bytes: int = 0
    status: int = 0


class SiteClient:
    """A client of one site; it reaches no other host and passes each request to `report`."""

    def __init__(self, settings: SiteSettings, report: Callable[[Sent], None], connections: int = 2) -> None:
        """Keep up to `connections` open, which many requests at a time may need."""
        self.base = settings.target + "/"
        self._timeouts_s = (min(settings.timeout_s, _LONGEST_CONNECT_S), settings.timeout_s)
        self._report, self._timer = report, ConnectTimer()
        self._session = requests.Session()
        self._session.trust_env = False  # no proxy, no .netrc: the load goes to the target
        self._session.verify = not settings.insecure
        self._session.headers["User-Agent"] = AGENT
        self._access = access_of(settings)
        self._let_in()
        if settings.insecure:
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, TimedAdapter(self._timer, settings.connect_to, connections))

    def _let_in(self) -> None:
        """Give the session what a guarded site wants. It goes nowhere else: this client asks nobody else."""
        self._session.headers.update(dict(self._access.headers))
        self._session.cert = self._access.certificate
        # As the jar itself names the host of a cookie, so that the site can set a newer one in its place.
        host = _PORT.sub("", urlsplit(self.base).netloc.lower())
        domain = host if "." in host else f"{host}.local"
        for name, value in self._access.cookies:
            self._session.cookies.set(name, value, domain=domain, path="/")

    @property
    def cookies(self) -> dict[str, str]:
        """The cookies that the site has set, by name."""
        return {cookie.name: cookie.value or "" for cookie in self._session.cookies}

    def take_cookies(self, other: "SiteClient") -> None:
        """Become the same visitor as `other`: logged in, where that is."""
        self._session.cookies.update(other._session.cookies)

    def url(self, step: str, path: str, base: str | None = None) -> str:
        """Return `path` (relative to `base`, default the target) as an address of the site.

        Raises StepFailedError if it leads to another host.
        """
        url = urljoin(base or self.base, path.lstrip("/") if base is None else path)
        if origin(url) != origin(self.base):
            parts = urlsplit(url)
            raise StepFailedError(
                step,
                "check_failed",
                f"the site leads to {parts.scheme}://{parts.netloc}, which is not the target: "
                "set its address (home, siteurl) to the target's, or use its own name with --connect-to",
                hopeless=True,
            )
        return url

    def send(
        self,
        step: str,
        method: str,
        path: str,
        *,
        base: str | None = None,
        check: Check = trouble,
        each: Chunk | None = None,
        headers: dict[str, str] | None = None,
        due_ns: int = 0,
        **body: Any,
    ) -> Reply:
        """Send one request (`data=`, `files=` or `json=` as in requests) and return the whole reply.

        Redirects are not followed. A trouble found by `check`, or a missing response, makes the request an
        error and raises StepFailedError. `each` takes the body piece by piece, with the instant of each; the
        reply's body is then empty, except that of an error. `due_ns` (monotonic) is when it was due; 0: when
        it starts.
        """
        url = self.url(step, path, base)
        request = self._session.prepare_request(requests.Request(method, url, headers=headers, **body))
        one = _Exchange()
        found: Trouble | None = None
        try:
            reply = self._exchange(request, one, each)
            found = check(reply)
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            reply, found = None, Trouble(error_kind(error), _first_line(error))
        if found:
            found = Trouble(found.kind, self._access.hidden(found.detail))
        done_ns = one.done_ns or time.monotonic_ns()
        sent = Sent(
            step,
            method,
            url,
            one.start_ns,
            total_us=(done_ns - one.start_ns) // 1000,
            ttfb_us=(one.first_ns - one.start_ns) // 1000 if one.first_ns else 0,
            connect_us=self._timer.connect_us,
            bytes=one.bytes,
            status=one.status,
            error=found.kind if found else "none",
            detail=found.detail if found else "",
            server_cpu_ms=reply.server_cpu_ms if reply else None,
            due_ns=due_ns,
        )
        self._report(sent)
        if found or reply is None:
            raise StepFailedError(step, sent.error, sent.detail)
        return reply

    def _exchange(self, request: requests.PreparedRequest, one: "_Exchange", each: Chunk | None) -> Reply:
        """Send `request` and read the whole reply, noting in `one` what happened when."""
        collected = bytearray()
        self._timer.connect_us = 0
        one.start_ns = time.monotonic_ns()
        answer = self._session.send(request, stream=True, allow_redirects=False, timeout=self._timeouts_s)
        one.first_ns, one.status = time.monotonic_ns(), answer.status_code
        with closing(answer):
            for piece in answer.raw.stream(_CHUNK, decode_content=True):
                one.bytes += len(piece)
                if each and one.status < 400:
                    each(time.monotonic_ns(), piece)
                else:
                    collected += piece
        one.done_ns = time.monotonic_ns()
        headers = {name.lower(): value for name, value in answer.headers.items()}
        total_us = (one.done_ns - one.start_ns) // 1000
        return Reply(request.url or "", one.status, headers, bytes(collected), total_us)

    def get(self, step: str, path: str, **further: Any) -> Reply:
        """Send a GET; see `send`."""
        return self.send(step, "GET", path, **further)

    def post(self, step: str, path: str, **further: Any) -> Reply:
        """Send a POST; see `send`."""
        return self.send(step, "POST", path, **further)

    def get_page(self, step: str, path: str, *, most: int = 5, **further: Any) -> Reply:
        """Send a GET and follow at most `most` redirects within the site, each a request of its own."""
        reply = self.get(step, path, **further)
        for _ in range(most):
            if not reply.location:
                return reply
            reply = self.get(step, reply.location, base=reply.url, **further)
        raise StepFailedError(step, "check_failed", f"over {most} redirects, the last to {reply.location}")

    def close(self) -> None:
        """Close all connections."""
        self._session.close()


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
