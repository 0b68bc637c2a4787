"""What commands share: the flags that mean the same in each, their groups, and former names."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as JSON on standard output."
)
progress_option = click.option(
    "--progress/--no-progress",
    default=None,
    help="Show a progress bar on standard error. Default: when that is a terminal.",
)
yes_option = click.option("--yes", is_flag=True, help="Ask no questions.")


def out_option(metavar: str, text: str, **attributes: Any) -> Callable[[Function], Function]:
    """Return `--out`, whose help is `text`; `metavar` is FILE or DIR."""
    return click.option(
        "--out", metavar=metavar, help=text, **{"type": click.Path(path_type=Path)} | attributes
    )


# Each is refused with the present name. A longer one goes before the group that it was in.
FORMER_NAMES = {
    "lab check": "plimsoll check",
    "lab clean": "plimsoll clean",
    "lab plan": "plimsoll check --plan",
    "lab status": "plimsoll status",
    "lab": "plimsoll check, status and clean",
    "init-clone": "plimsoll clone add",
    "hosts run": "plimsoll hosts exec",
    "schedule run": "plimsoll schedule now (install each schedule again: its timer has the old name)",
}


class CommandGroup(click.Group):
    """A group whose help shows the first sentence of each command whole."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command with its summary, which click would cut at the end of the line."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(1000)) for name, each in commands if each])


def present_name(words: list[str]) -> str | None:
    """Return the sentence that says what the former command of these words is called now, else None."""
    for count in (2, 1):
        former = " ".join(words[:count])
        if former in FORMER_NAMES:
            return f"plimsoll {former} is now {FORMER_NAMES[former]}."
    return None
