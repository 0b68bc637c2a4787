"""The two sides before anything is measured: do both answer, as one site, at two addresses?"""

import http.client
import json
import socket
import ssl
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from plimsoll.common.errors import PlimsollError, SettingsError
from plimsoll.common.hostile import printable
from plimsoll.lab.errors import last_words
from plimsoll.lab.experiment.scenarios import run_replay

PAGES = 20  # of the log that are compared before the first run
_PATIENCE_S = 30.0
_COMPARE_S = 600.0
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class ServedSide:
    """One side: the site's URL as visitors know it, and the address to connect to, if another."""

    name: str
    url: str
    connect_to: str | None = None
    insecure: bool = False

    @property
    def host(self) -> str:
        """The name and port that visitors use."""
        return urlsplit(self.url).netloc

    @property
    def connect_option(self) -> str:
        """The option that names the address to connect to."""
        return "--connect-to" if self.name == "target" else f"--{self.name}-connect-to"

    @property
    def address(self) -> tuple[str, int]:
        """The host and port to connect to."""
        parts = urlsplit(self.url if self.connect_to is None else f"//{self.connect_to}")
        return parts.hostname or "", parts.port or _PORTS[urlsplit(self.url).scheme]


@dataclass(frozen=True)
class Answer:
    """The status of a side's front page, where that leads, and what serves it (hostile)."""

    status: int
    location: str | None
    server: str


def check_sides(
    sides: tuple[ServedSide, ServedSide], logs: Sequence[str], log_format: str | None, allow_differences: bool
) -> None:
    """Raise SettingsError, with all problems, unless both sides answer with the same pages of one log."""
    if _places(sides[0]) & _places(sides[1]) and sides[0].host == sides[1].host:
        raise SettingsError(
            f"--candidate: {sides[1].url} is the baseline itself: give the address of another server"
        )
    check_answers(sides)
    if not allow_differences and (why := _compare_pages(sides, logs, log_format)):
        raise SettingsError(
            f"--candidate: is not the same site: {why} (plimsoll same shows the pages; --allow-differences "
            "goes on all the same)"
        )


def check_answers(sides: Sequence[ServedSide]) -> None:
    """Raise SettingsError, with all problems, unless every side serves its front page."""
    problems = []
    for side in sides:
        try:
            answer = ask(side)
        except (OSError, http.client.HTTPException) as error:
            problems.append(f"--{side.name}: {side.url}: does not answer: {_explain(error)}")
            continue
        if answer.location and (elsewhere := _find_other_host(side, answer.location)):
            there, (host, port) = urlsplit(elsewhere), side.address
            port = port if there.scheme == urlsplit(side.url).scheme else _PORTS.get(there.scheme, port)
            problems.append(
                f"--{side.name}: {side.url} redirects to {printable(elsewhere, 200)}, and no request goes to "
                f"another host: give the site's own name and this address: --{side.name} "
                f"{printable(f'{there.scheme}://{there.netloc}', 200)} {side.connect_option} {host}:{port}"
            )
        elif answer.status >= http.HTTPStatus.INTERNAL_SERVER_ERROR:
            problems.append(f"--{side.name}: {side.url}: answers {answer.status}: see its error log")
    if problems:
        raise SettingsError("\n".join(problems))


def ask(side: ServedSide) -> Answer:
    """Ask a side for its front page. Raises OSError and HTTPException."""
    parts = urlsplit(side.url)
    host, port = side.address
    connection = http.client.HTTPConnection(host, port, timeout=_PATIENCE_S)
    try:
        connection.connect()
        if parts.scheme == "https":
            context = ssl.create_default_context()
            if side.insecure:
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection.sock = context.wrap_socket(connection.sock, server_hostname=parts.hostname)
        connection.request("GET", "/", headers={"Host": parts.netloc, "User-Agent": "plimsoll"})
        answer = connection.getresponse()
        return Answer(answer.status, answer.getheader("Location"), answer.getheader("Server") or "")
    finally:
        connection.close()


def _find_other_host(side: ServedSide, location: str) -> str | None:
    """Return where a redirect leads, None where it stays at the side's own host."""
    there = urljoin(f"{side.url}/", location)
    own, other = urlsplit(side.url), urlsplit(there)
    same = (own.hostname, own.port or _PORTS.get(own.scheme)) == (
        other.hostname,
        other.port or _PORTS.get(other.scheme),
    )
    return None if same else there


def _places(side: ServedSide) -> set[tuple[str, int]]:
    host, port = side.address
    try:
        return {(str(found[4][0]), port) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    except OSError:
        return {(host, port)}


def _compare_pages(
    sides: tuple[ServedSide, ServedSide], logs: Sequence[str], log_format: str | None
) -> str | None:
    """Return how the first pages of the log differ (hostile), None where they do not."""
    words = ["same", "--json", "--quiet", f"--limit={PAGES}"]
    for side in sides:
        words += [f"--{side.name}={side.url}"]
        words += [f"--{side.name}-connect-to={side.connect_to}"] if side.connect_to else []
    words += [f"--format={log_format}"] if log_format else []
    words += ["--insecure"] if sides[0].insecure else []
    try:
        with tempfile.TemporaryDirectory() as folder:
            done = run_replay(*words, "--out", folder, "--", *logs, timeout_s=_COMPARE_S)
    except subprocess.TimeoutExpired:
        raise PlimsollError(f"the sides took over {_COMPARE_S:g} s to serve {PAGES} pages") from None
    if done.returncode not in (0, 1, 3):
        raise PlimsollError(last_words(done.stderr).removeprefix("replay: "))
    return None if done.returncode == 0 else str(json.loads(done.stdout)["says"])


def _explain(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {error.verify_message} (--insecure accepts any)"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return printable(str(error), 200) or type(error).__name__
