"""Programs of this checkout that are not Python."""

from pathlib import Path

from plimsoll.common.errors import PlimsollError

_ROOT = Path(__file__).parents[2]


def replay_program() -> str:
    """Return the path of `bin/replay`, whether it is built or not."""
    return str(_ROOT / "bin" / "replay")


def built_replay_program() -> str:
    """Return the path of `bin/replay`. Raises PlimsollError where it is not built."""
    program = replay_program()
    if not Path(program).is_file():
        raise PlimsollError(f"{program}: is not built yet: run make build")
    return program
