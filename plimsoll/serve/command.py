"""`plimsoll serve`: a results folder in the browser."""

import asyncio
import contextlib
import os
import socket
from pathlib import Path

import click
import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import printable
from plimsoll.serve.address import Address, parsed_address
from plimsoll.serve.application import Application
from plimsoll.serve.catalogue import index_of
from plimsoll.serve.token import NAME, read_token

_DEFAULT = "127.0.0.1:8090"
_CONNECTIONS = 100  # half of them for one address
_REQUEST_S = 10.0  # for the head and the body of a request
_LAST_WORDS_S = 1  # pages that follow a run never end by themselves


@click.command()
@click.argument("folder", metavar="[FOLDER]", default="results", type=click.Path(path_type=Path))
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=_DEFAULT,
    show_default=True,
    help="Where to listen. Other than on loopback it wants a token. Port 0 is any free one.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help=f"Ask for the token in the first line of this file; without it for that in {NAME}, if set.",
)
@click.option(
    "--name",
    "names",
    metavar="NAME",
    multiple=True,
    help="A name of this machine in addresses, beside localhost and its IP addresses. May be given again.",
)
def serve(folder: Path, listen: str, token_file: Path | None, names: tuple[str, ...]) -> None:
    """Show a results folder in the browser: runs, experiments, nights, documents, and what runs now.

    It only reads, and nothing outside FOLDER. Ctrl-C ends it.

    \b
    Examples:
        plimsoll serve results
        plimsoll serve results/one-machine-20261121T040512Z --listen 127.0.0.1:8091
        plimsoll serve --listen 0.0.0.0:8090 --token-file token --name lab.example.org

    Exit codes: 0 it was ended; 2 wrong usage, or the address cannot be listened on.
    """  # noqa: D301 \b is click's: keep these lines as they are
    address = parsed_address(listen)
    token = read_token(token_file, os.environ)
    if not address.is_loopback and token is None:
        raise SettingsError(
            f"--listen: {printable(address.host)} is reached from other machines, which takes a token: give "
            f"--token-file FILE or {NAME}, or listen on 127.0.0.1"
        )
    if not folder.is_dir():
        raise SettingsError(f"{folder}: there is no such folder; run something first, or make it")
    root = folder.resolve()
    application = Application(root, token, index_of(root, os.environ)).app(
        frozenset(name.lower() for name in names)
    )
    _give_way()
    with _listening(address) as listener:
        port = listener.getsockname()[1]
        click.echo(
            f"{printable(str(folder), 4096)}: {address.url(port)}"
            + (" (it takes the token)" if token else "")
        )
        with contextlib.suppress(KeyboardInterrupt):
            server_of(application).run(sockets=[listener])


class Impatient(H11Protocol):
    """A connection whose requests have to come in time, and which leaves room for those of other addresses.

    Where there are too many, the one that has waited longest for its request makes room.
    """

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, in the place of another one where need be."""
        super().connection_made(transport)
        self._await_request()
        for most, is_own in ((_CONNECTIONS // 2, True), (_CONNECTIONS - 1, False)):
            those = [each for each in self.connections if isinstance(each, Impatient)]
            those = [each for each in those if each.host == self.host or not is_own]
            if len(those) > most:
                min(those, key=Impatient.waits_until_s).end()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of it."""
        super().connection_lost(exc)
        self._stop_waiting()

    def _await_request(self) -> None:
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop_waiting()
        elif self._late is None:
            self._late = self.loop.call_later(_REQUEST_S, self.end)

    def _stop_waiting(self) -> None:
        if self._late:
            self._late.cancel()
        self._late = None

    def end(self) -> None:
        """Close it, and count it no more."""
        self.connections.discard(self)
        self.transport.abort()

    @property
    def host(self) -> str | None:
        """The address at the other end."""
        return self.client[0] if self.client else None

    def waits_until_s(self) -> float:
        """Return until when it waits for a request; for ever where it answers one."""
        timer = self._late or self.timeout_keep_alive_task
        return timer.when() if timer else float("inf")


def server_of(application: ASGIApp) -> uvicorn.Server:
    """Return the server that answers for an application."""
    return uvicorn.Server(
        uvicorn.Config(
            application,
            http=Impatient,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
            limit_concurrency=_CONNECTIONS,
            timeout_graceful_shutdown=_LAST_WORDS_S,
        )
    )


def _give_way() -> None:
    """Let every other program go first: a load generator beside it must not notice."""
    with contextlib.suppress(OSError):
        os.nice(19)
    with contextlib.suppress(OSError):
        if os.sched_getscheduler(0) == os.SCHED_OTHER:  # else somebody chose already
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _listening(address: Address) -> socket.socket:
    try:
        family, kind, number, _, where = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise SettingsError(
            f"--listen: {printable(address.host)} is no address of this machine: {error.strerror}"
        ) from None
    listener = socket.socket(family, kind, number)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
        listener.listen(_CONNECTIONS)
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"--listen: {printable(address.host)}:{address.port} cannot be listened on: {error.strerror}; "
            "choose another"
        ) from None
    return listener
