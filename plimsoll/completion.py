"""`plimsoll completion`: the script that completes commands, options and values in a shell."""

import click
from click.shell_completion import get_completion_class

_VARIABLE = "_PLIMSOLL_COMPLETE"  # the variable by which click knows that a shell asks


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and values in bash, zsh or fish.

    \b
    Examples:
        plimsoll completion bash > ~/.local/share/bash-completion/completions/plimsoll
        plimsoll completion zsh > "${fpath[1]}/_plimsoll"
        plimsoll completion fish > ~/.config/fish/completions/plimsoll.fish
    """  # noqa: D301 \b is click's: keep these lines as they are
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 click has these three
    click.echo(kind(ctx.find_root().command, {}, "plimsoll", _VARIABLE).source())
