"""`plimsoll serve`: a results folder in the browser: what is there, what runs now, two runs compared."""

import os
from pathlib import Path

import click

from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import printable

_DEFAULT = "127.0.0.1:8090"


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
    help="Ask for the token in the first line of this file; without it for that in PLIMSOLL_SERVE_TOKEN, "
    "if set.",
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
    from plimsoll.serve.application import Application, answer_at
    from plimsoll.serve.catalogue import index_of
    from plimsoll.serve.guard import VARIABLE, parsed_address, read_token

    address = parsed_address(listen)
    token = read_token(token_file, os.environ)
    if not address.is_loopback and token is None:
        raise SettingsError(
            f"--listen: {printable(address.host)} is reached from other machines, which takes a token: give "
            f"--token-file FILE or {VARIABLE}, or listen on 127.0.0.1"
        )
    if not folder.is_dir():
        raise SettingsError(f"{folder}: there is no such folder; run something first, or make it")
    root = folder.resolve()
    application = Application(root, token, index_of(root, os.environ)).app(
        frozenset(name.lower() for name in names)
    )
    text = printable(str(folder), 4096)
    note = " (it takes the token)" if token else ""
    answer_at(address, application, lambda port: click.echo(f"{text}: {address.url(port)}{note}"))
