"""One visitor's HTTP: requests to one site, replies, and what is wrong with them.

Every request is timed and reported. Status 200 may hide an error, so each reply is searched for the messages
that sites show in place of a page.
"""

import errno
import json
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from http.client import RemoteDisconnected
from typing import Any
from urllib.parse import urljoin, urlsplit

import lxml.html
import requests
import urllib3
import urllib3.exceptions as u3
from requests.adapters import HTTPAdapter

from plimsoll.scenarios.running.access import read_access
from plimsoll.scenarios.running.settings import SiteSettings, origin

AGENT = "Mozilla/5.0 (X11; Linux x86_64) Plimsoll"
_CHUNK = 1 << 16
_LONGEST_CONNECT_S = 30.0
_PORT = re.compile(r":[0-9]*$")
_CPU = re.compile(r"(?:^|,)\s*cpu\s*;[^,]*?dur=([0-9.]+)")
_LONGEST = 200_000  # failures show at the start or the end of a page, never deep in an article
_FATAL = re.compile(
    r"<b>(?:PHP )?(?:Fatal|Parse) error</b>|^PHP (?:Fatal|Parse) error:"
    r"|\bUncaught (?:\w*Error|\w*Exception)\b.{0,400}(?:thrown in|Stack trace)"
    r"|There has been a critical error on this website",
    re.S | re.M,
)
_DISK = re.compile(
    r"No space left on device|Errcode: 28\b|[Dd]isk (?:is )?full|not enough (?:free )?(?:disk )?space"
    r"|disk_full|quota exceeded|could not be written to disk|Failed to write file to disk"
)
_DATABASE = re.compile(r"Error establishing a database connection|database server has gone away")
_NONCE = re.compile(
    r"The link you followed has expired|rest_cookie_invalid_nonce|Are you sure you want to do this\?"
)
_FORBIDDEN = re.compile(
    r"[Ss]orry, you are not allowed|need a higher level of permission"
    r"|rest_cannot_\w+|rest_forbidden|rest_not_logged_in"
)
_MAINTENANCE = re.compile(r"Briefly unavailable for scheduled maintenance")
_TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.S)


@dataclass(frozen=True)
class Reply:
    """A whole response. `body` is empty if the caller took it piece by piece; header names are lower case."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    total_us: int

    @cached_property
    def text(self) -> str:
        """The body as text; bytes that are not UTF-8 are replaced."""
        return self.body.decode("utf-8", errors="replace")

    @cached_property
    def page(self) -> lxml.html.HtmlElement:
        """The body as HTML; an empty page if it has none."""
        text = self.text.replace("\0", "").strip()
        return lxml.html.document_fromstring(text or "<html><body></body></html>", base_url=self.url)

    @cached_property
    def data(self) -> Any:
        """The body as JSON; None if it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def location(self) -> str:
        """The target of a redirect; empty if the reply is not one."""
        return self.headers.get("location", "") if 300 <= self.status < 400 else ""

    @property
    def server_cpu_ms(self) -> float | None:
        """CPU time from the header `Server-Timing: cpu;dur=…` (W3C Server Timing); None without it."""
        found = _CPU.search(self.headers.get("server-timing", ""))
        try:
            return float(found[1]) if found else None
        except ValueError:
            return None


@dataclass(frozen=True)
class StepFailure:
    """A kind of `errors.json`, and the site's own words."""

    kind: str
    detail: str


def find_failure(reply: Reply) -> StepFailure | None:
    """Return the failure in `reply`, or None. A status of 400 or more is always one."""
    text = reply.text
    if len(text) > 2 * _LONGEST:
        text = text[:_LONGEST] + text[-_LONGEST:]
    if reply.status in (502, 503, 504) and _is_from_proxy(reply, text):
        return StepFailure("backend_dead", f"status {reply.status} from the proxy: {visible_text(text)}")
    if reply.status == 503 and (_MAINTENANCE.search(text) or reply.headers.get("retry-after") == "600"):
        return StepFailure(
            "upgrade_locked",
            f"the site is in maintenance mode: {visible_text(text)} If no upgrade is running, an earlier "
            "one was interrupted: delete the file .maintenance next to wp-config.php",
        )
    if _DISK.search(text):
        return StepFailure("out_of_disk", visible_text(text, _DISK))
    if _FATAL.search(text):
        return StepFailure("php_fatal", visible_text(text, _FATAL))
    if _DATABASE.search(text) and reply.status >= 500:
        return StepFailure("backend_dead", visible_text(text, _DATABASE))
    if reply.status < 400:
        return None
    if _NONCE.search(text) or (reply.status == 403 and text.strip() == "-1"):
        return StepFailure("nonce_expired", visible_text(text, _NONCE))
    if reply.status in (401, 403, 500) and _FORBIDDEN.search(text):
        return StepFailure("no_permission", visible_text(text, _FORBIDDEN))
    return StepFailure("http_error", f"status {reply.status}: {visible_text(text)}")


def _is_from_proxy(reply: Reply, text: str) -> bool:
    server = reply.headers.get("server", "").lower()
    return (
        "varnish" in server
        or "Guru Meditation" in text
        or "Backend fetch failed" in text
        or bool(re.search(r"<center>(?:nginx|openresty)[^<]*</center>", text))
        or ("<html" not in text.lower() and "x-varnish" in reply.headers)
    )


def visible_text(html: str, near: re.Pattern[str] | None = None) -> str:
    """Return up to 200 characters of the visible text in `html`, near a match of `near` if there is one."""
    found = near.search(html) if near else None
    if found:
        html = html[max(found.start() - 20, 0) : found.start() + 600]
    return " ".join(_TAGS.sub(" ", html).split())[:200]


class StepFailedError(Exception):
    """A step of a scenario failed.

    `kind` is a name of `errors.json`; `hopeless` means that no later step can succeed.
    """

    def __init__(self, step: str, kind: str, detail: str, *, hopeless: bool = False) -> None:
        super().__init__(f"{step}: {kind.replace('_', ' ')}: {detail}")
        self.step, self.kind, self.detail, self.hopeless = step, kind, detail, hopeless


Check = Callable[[Reply], StepFailure | None]
Chunk = Callable[[int, bytes], None]  # monotonic_ns, bytes


@dataclass(frozen=True)
class SentRequest:
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

    def __init__(
        self, settings: SiteSettings, report: Callable[[SentRequest], None], connections: int = 2
    ) -> None:
        """Keep up to `connections` open, which many requests at a time may need."""
        self.base = settings.target + "/"
        self._timeouts_s = (min(settings.timeout_s, _LONGEST_CONNECT_S), settings.timeout_s)
        self._report, self._timer = report, ConnectTimer()
        self._session = requests.Session()
        self._session.trust_env = False  # no proxy, no .netrc: the load goes to the target
        self._session.verify = not settings.insecure
        self._session.headers["User-Agent"] = AGENT
        self._access = read_access(settings)
        # What a guarded site asks for goes nowhere else: this client asks nobody else.
        self._session.headers.update(dict(self._access.headers))
        self._session.cert = self._access.certificate
        # As the jar itself names the host of a cookie, so that the site can set a newer one in its place.
        host = _PORT.sub("", urlsplit(self.base).netloc.lower())
        domain = host if "." in host else f"{host}.local"
        for name, value in self._access.cookies:
            self._session.cookies.set(name, value, domain=domain, path="/")
        if settings.insecure:
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, TimedAdapter(self._timer, settings.connect_to, connections))

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
        check: Check = find_failure,
        on_chunk: Chunk | None = None,
        headers: dict[str, str] | None = None,
        due_ns: int = 0,
        **body: Any,
    ) -> Reply:
        """Send one request (`data=`, `files=` or `json=` as in requests) and return the whole reply.

        Redirects are not followed. A failure found by `check`, or a missing response, makes the request an
        error and raises StepFailedError. `on_chunk` takes the body piece by piece, with the instant of each;
        the reply's body is then empty, except that of an error. `due_ns` (monotonic) is when it was due; 0:
        when it starts.
        """
        url = self.url(step, path, base)
        request = self._session.prepare_request(requests.Request(method, url, headers=headers, **body))
        one = _Exchange()
        found: StepFailure | None = None
        try:
            reply = self._exchange(request, one, on_chunk)
            found = check(reply)
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            reply, found = (
                None,
                StepFailure(error_kind(error), (str(error).splitlines() or [type(error).__name__])[0]),
            )
        if found:
            found = StepFailure(found.kind, self._access.hide_secrets(found.detail))
        done_ns = one.done_ns or time.monotonic_ns()
        sent = SentRequest(
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

    def _exchange(self, request: requests.PreparedRequest, one: _Exchange, on_chunk: Chunk | None) -> Reply:
        """Send `request` and read the whole reply, noting in `one` what happened when."""
        collected = bytearray()
        self._timer.connect_us = 0
        one.start_ns = time.monotonic_ns()
        answer = self._session.send(request, stream=True, allow_redirects=False, timeout=self._timeouts_s)
        one.first_ns, one.status = time.monotonic_ns(), answer.status_code
        with closing(answer):
            for piece in answer.raw.stream(_CHUNK, decode_content=True):
                one.bytes += len(piece)
                if on_chunk and one.status < 400:
                    on_chunk(time.monotonic_ns(), piece)
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


class ConnectTimer:
    """The time that the last request spent on a new connection; 0 if it reused one."""

    connect_us = 0

    def add(self, started_ns: int) -> None:
        """Add the time since `started_ns` (monotonic clock)."""
        self.connect_us += (time.monotonic_ns() - started_ns) // 1000


class TimedAdapter(HTTPAdapter):
    """An adapter whose connections report to `timer` how long they took to open, name and TLS included.

    Up to `connections` are kept.
    """

    def __init__(self, timer: ConnectTimer, connect_to: str | None, connections: int = 2) -> None:
        self._timer, self._connect_to = timer, connect_to
        super().__init__(pool_connections=2, pool_maxsize=connections, max_retries=0)

    def init_poolmanager(self, *args: Any, **keywords: Any) -> None:
        """Make the manager with pools of timed connections."""
        super().init_poolmanager(*args, **keywords)
        timer = self._timer

        class Plain(urllib3.connection.HTTPConnection):
            def connect(self) -> None:
                started_ns = time.monotonic_ns()
                super().connect()
                timer.add(started_ns)

        class Secure(urllib3.connection.HTTPSConnection):
            def connect(self) -> None:
                started_ns = time.monotonic_ns()
                super().connect()
                timer.add(started_ns)

        class PlainPool(urllib3.HTTPConnectionPool):
            ConnectionCls = Plain

        class SecurePool(urllib3.HTTPSConnectionPool):
            ConnectionCls = Secure

        self.poolmanager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}

    def build_connection_pool_key_attributes(
        self, request: requests.PreparedRequest, verify: Any, cert: Any = None
    ) -> Any:
        """Connect to `connect_to` if set; the site's name stays in Host, SNI and the certificate check."""
        parameters: Any = super().build_connection_pool_key_attributes(request, verify, cert)
        host, pool = parameters
        if self._connect_to:
            name = host["host"]
            address, _, port = self._connect_to.rpartition(":")
            host |= {"host": address.strip("[]"), "port": int(port)}
            request.headers["Host"] = urlsplit(request.url or "").netloc
            if host["scheme"] == "https":
                pool |= {"server_hostname": name, "assert_hostname": name}
        return host, pool


def error_kind(error: BaseException) -> str:
    """Return the name in `errors.json` for an exception of requests, looking through to its causes. Pure."""
    chain = list(_find_causes(error))
    if any(isinstance(cause, ssl.SSLError | requests.exceptions.SSLError) for cause in chain):
        return "tls_failed"
    if any(isinstance(cause, RemoteDisconnected) for cause in chain):  # to Python this is a reset as well
        return "closed_early"
    for cause in chain:
        if isinstance(cause, ConnectionRefusedError):
            return "connect_refused"
        if isinstance(cause, ConnectionResetError | BrokenPipeError):
            return "reset"
        if isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED:
            return "connect_refused"
    if any(isinstance(cause, u3.NewConnectionError) for cause in chain):  # urllib3 has it as a time-out
        return "connect_failed"
    if any(isinstance(cause, requests.Timeout | u3.TimeoutError | TimeoutError) for cause in chain):
        return "timeout"
    ended = ("closed connection", "ended prematurely")
    if any(
        isinstance(cause, u3.IncompleteRead) or any(words in str(cause) for words in ended) for cause in chain
    ):
        return "closed_early"
    if any(isinstance(cause, u3.ProtocolError | requests.exceptions.ChunkedEncodingError) for cause in chain):
        return "bad_response"
    if any(isinstance(cause, requests.ConnectionError) for cause in chain):
        return "connect_failed"
    return "bad_response" if isinstance(error, requests.RequestException | u3.HTTPError) else "other"


def _find_causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        # The reason of urllib3's errors is an exception, that of ssl's a word.
        further = (one.__cause__, one.__context__, getattr(one, "reason", None), *one.args)
        waiting += [cause for cause in further if isinstance(cause, BaseException)]
