"""Programs and files of ours that are not Python: in the checkout, or beside an installed `plimsoll`."""

import sys
from pathlib import Path

from plimsoll.common.errors import PlimsollError

_CHECKOUT = Path(__file__).parents[2]
_IS_CHECKOUT = (_CHECKOUT / "replay" / "go.mod").is_file()


def project() -> Path:
    """Return the folder of docker-compose.yml, site/ and examples/."""
    return _CHECKOUT if _IS_CHECKOUT else Path(sys.prefix) / "share" / "plimsoll"


def own_program(name: str) -> Path:
    """Return the path of a program of ours, which need not exist."""
    return (_CHECKOUT if _IS_CHECKOUT else Path(sys.prefix)) / "bin" / name


def replay_program() -> str:
    """Return the path of `bin/replay`, which need not exist."""
    return str(own_program("replay"))


def missing_replay() -> str:
    """Return what to say if `bin/replay` is missing."""
    remedy = "run make build" if _IS_CHECKOUT else "run ./install of the release again"
    return f"{replay_program()}: is not there: {remedy}"


def built_replay_program() -> str:
    """Return the path of `bin/replay`. Raises PlimsollError if it is missing."""
    program = replay_program()
    if not Path(program).is_file():
        raise PlimsollError(missing_replay())
    return program


def plimsoll_command() -> list[str]:
    """Return the command `plimsoll` of this very installation."""
    beside = Path(sys.executable).with_name("plimsoll")
    return [str(beside)] if beside.exists() else [sys.executable, "-m", "plimsoll"]
