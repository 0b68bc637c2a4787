"""From one lab.yml to all its runs: planned, carried out, found again after a crash, and removed.

Here is the list of the commands of `plimsoll lab`; `plimsoll run` is in experiment.py.
"""

from importlib import import_module

import click

_COMMANDS = {
    "check": "check:check",
    "clean": "clean:clean",
    "plan": "plan:plan",
    "status": "status.status:status",
}


class _Lab(click.Group):
    """Loads a command only when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f"{__name__}.{module}"), name)
        return command


@click.group(cls=_Lab)
def lab() -> None:
    """Plan experiments, and clean up what they make.

    An experiment is one file, lab.yml (docs/lab.md). `plimsoll run lab.yml` runs it.
    """
