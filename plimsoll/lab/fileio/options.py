"""The options of `plimsoll fileio`, as settings."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from plimsoll.common.errors import SettingsError
from plimsoll.common.validation import Problem, problems_of
from plimsoll.lab.fileio.fsync.settings import FsyncMatrix, FsyncSettings
from plimsoll.lab.fileio.settings import FileioSettings, Matrix

_LISTS = ("threads", "tests", "calls", "engines", "block_sizes")
_OF_FSYNC = tuple(name for name in FsyncMatrix.model_fields if name not in Matrix.model_fields)


def settings_of(
    directory: Path, given: Mapping[str, Any], *, fsync: bool = False
) -> FileioSettings | FsyncSettings:
    """Return checked settings; lists come as `1,8`. Raises SettingsError with all problems."""
    values = {name: value for name, value in given.items() if value is not None}
    for name in _LISTS:
        if name in values:
            values[name] = [part.strip() for part in values[name].split(",") if part.strip()]
    alien = [] if fsync else [name for name in _OF_FSYNC if name in values]
    said = [f"--{_dashed(name)}: goes with --fsync: add that, or leave it out" for name in alien]
    model = FsyncSettings if fsync else FileioSettings
    kept = {name: value for name, value in values.items() if name not in alien}
    try:
        settings = model.model_validate(kept | {"directory": str(directory.resolve())})
    except ValidationError as error:
        said += _texts(problems_of(error))
    if said:
        raise SettingsError("\n".join(said))
    return settings


def _texts(problems: list[Problem]) -> list[str]:
    # A list whose items are refused counts as too short as well: that is no problem of its own.
    items = {_option(one) for one in problems if len(one.at) > 1}
    refused = [one for one in problems if len(one.at) > 1 or _option(one) not in items]
    return [f"--{_option(one)}: {one.text if one.at else _dashed(one.text)}" for one in refused]


def _option(problem: Problem) -> str:
    """Return the option that is at fault; of a preset with others beside it, that."""
    return _dashed(str(problem.at[0])) if problem.at else "preset"


def _dashed(name: str) -> str:
    return name.replace("_", "-")
