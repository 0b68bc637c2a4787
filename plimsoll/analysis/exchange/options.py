"""Options that the imports share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

out_option = click.option(
    "--out",
    metavar="DIR",
    default=Path("results"),
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder for run directories.",
)
target_option = click.option(
    "--target", metavar="URL", help="The site's base URL, to note it: it is not in the files."
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print what was imported as JSON on standard output."
)


def scenario_option(default: str) -> Decorator:
    """Return the option that names the scenario; names of directories are made of it."""
    return click.option(
        "--scenario",
        metavar="NAME",
        default=default,
        show_default=True,
        callback=_plain,
        help="What to call the scenario.",
    )


def _plain(ctx: click.Context, parameter: click.Parameter, name: str) -> str:
    if 0 < len(name) <= 60 and name.isascii() and name.replace("-", "").replace("_", "").isalnum():
        return name
    raise click.BadParameter("use letters, digits, '-' and '_'", ctx, parameter)
