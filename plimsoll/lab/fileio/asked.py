"""What `plimsoll fileio` is asked to measure on this machine: checked, and measured."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import printable
from plimsoll.common.validation import Problem, problems_of
from plimsoll.lab.fileio.fio import FsyncMatrix, FsyncSettings
from plimsoll.lab.fileio.measure import Settings, cache_caution, measure_cells
from plimsoll.lab.fileio.sysbench import FileioSettings, Matrix
from plimsoll.lab.machine import LocalMachine
from plimsoll.rundir.volumes import AnyCell

_LISTS = ("threads", "tests", "calls", "engines", "block_sizes")
_OF_FSYNC = tuple(name for name in FsyncMatrix.model_fields if name not in Matrix.model_fields)


def check_settings(
    directory: Path, given: Mapping[str, Any], *, fsync: bool = False
) -> FileioSettings | FsyncSettings:
    """Return checked settings; lists come as `1,8`. Raises SettingsError with all problems."""
    values = {name: value for name, value in given.items() if value is not None}
    for name in _LISTS:
        if name in values:
            values[name] = [part.strip() for part in values[name].split(",") if part.strip()]
    alien = [] if fsync else [name for name in _OF_FSYNC if name in values]
    said = [f"--{_option_name(name)}: goes with --fsync: add that, or leave it out" for name in alien]
    model = FsyncSettings if fsync else FileioSettings
    kept = {name: value for name, value in values.items() if name not in alien}
    try:
        settings = model.model_validate(kept | {"directory": str(directory.resolve())})
    except ValidationError as error:
        problems = problems_of(error)
        # A list whose items are refused counts as too short as well: that is not a problem of its own.
        items = {_option(one) for one in problems if len(one.at) > 1}
        refused = [one for one in problems if len(one.at) > 1 or _option(one) not in items]
        said += [f"--{_option(one)}: {one.text if one.at else _option_name(one.text)}" for one in refused]
    if said:
        raise SettingsError("\n".join(said))
    return settings


def _option(problem: Problem) -> str:
    """Return the option that is at fault; of a preset with others beside it, that."""
    return _option_name(str(problem.at[0])) if problem.at else "preset"


def _option_name(name: str) -> str:
    return name.replace("_", "-")


async def measure(
    settings: Settings, out: Path, resume: bool, show: Callable[[int, int], None]
) -> list[AnyCell]:
    """Measure what `out` lacks of the cells, and return all of them. Raises FileioError."""
    machine = LocalMachine()
    try:
        if isinstance(settings, FileioSettings):
            caution = cache_caution(settings, await machine.read_text("/proc/meminfo"))
            if caution:
                click.echo(f"Caution: {printable(caution, 1000)}", err=True)
        return await measure_cells(machine, settings, out, resume=resume, on_progress=show)
    finally:
        await machine.close()
