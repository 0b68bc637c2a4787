"""Groups of commands, and the names that commands had before."""

import click

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
