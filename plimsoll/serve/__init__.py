"""`plimsoll serve`: a results folder in the browser: what is there, what runs now, two runs compared."""

import os
from pathlib import Path

import click

from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import printable

_DEFAULT = "127.0.0.1:8090"
TOKEN_VARIABLE = "PLIMSOLL_SERVE_TOKEN"  # noqa: S105 its name


@click.command()
@click.argument("folder", metavar="[FOLDER]", default="results", type=click.Path(path_type=Path))
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=_DEFAULT,
    show_default=True,
    help="Address and port to listen on. A token is required except on loopback. Port 0 picks any free port.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help=f"Require the token in the first line of this file. Default: the token in {TOKEN_VARIABLE}, if set.",
)
@click.option(
    "--name",
    "names",
    metavar="NAME",
    multiple=True,
    help="A host name to accept, in addition to localhost and IP addresses. May be repeated.",
)
def serve(folder: Path, listen: str, token_file: Path | None, names: tuple[str, ...]) -> None:
    """Show a results folder in the browser: runs, experiments, nights, documents and running tests.

    \b
    Examples:
        plimsoll serve results
        plimsoll serve results/latest --listen 127.0.0.1:8091
        plimsoll serve --listen 0.0.0.0:8090 --token-file token --name lab.example.org

    It only reads, and only inside FOLDER. Press Ctrl-C to stop it.

    Exit codes: 0 it was stopped; 2 wrong usage, or it cannot listen on the address.
    """  # noqa: D301 \b is click's: keep these lines as they are
    from plimsoll.serve.application import Application
    from plimsoll.serve.catalogue import find_index_file
    from plimsoll.serve.guard import answer_requests, parse_address, read_token

    address = parse_address(listen)
    token = read_token(token_file, os.environ)
    if not address.is_loopback and token is None:
        raise SettingsError(
            f"--listen: {printable(address.host)} can be reached from other machines, so a token is "
            f"required: give "
            f"--token-file FILE or {TOKEN_VARIABLE}, or listen on 127.0.0.1"
        )
    if not folder.is_dir():
        raise SettingsError(f"{folder}: is not there: run something first, or create it")
    root = folder.resolve()
    application = Application(root, token, find_index_file(root, os.environ)).app(
        frozenset(name.lower() for name in names)
    )
    text = printable(str(folder), 4096)
    note = " (asks for the token)" if token else ""
    answer_requests(address, application, lambda port: click.echo(f"{text}: {address.url(port)}{note}"))
