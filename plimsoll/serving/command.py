"""`plimsoll serve`: a results folder in the browser."""

import contextlib
import os
import socket
from pathlib import Path

import click
import uvicorn

from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import printable
from plimsoll.serving.address import Address, parsed_address
from plimsoll.serving.application import Application
from plimsoll.serving.catalogue import index_of
from plimsoll.serving.token import NAME, read_token

_DEFAULT = "127.0.0.1:8090"
_CONNECTIONS = 100
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
        server = uvicorn.Server(
            uvicorn.Config(
                application,
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
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listener])


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
