"""A toy observer: the wind, with a key of its own."""

from pydantic import Field

from plimsoll.lab.machine import Machine
from plimsoll.lab.names import StrictModel
from plimsoll.lab.observers.observer import (
    FileSource,
    Log,
    Observer,
    ObserverOptions,
    OwnKeys,
    Reading,
    gauge,
)

COLUMNS = (gauge("knots_count", "knots"),)


class WindSettings(StrictModel):
    """Where the wind is read."""

    vane: str = Field("roof", description="Which vane is read.")


def _read(texts: tuple[str, ...]) -> Reading:
    return {"knots": float(texts[0])} if texts[0] else {}


async def _prepare(_machine: Machine, options: ObserverOptions, _log: Log) -> FileSource:
    own = options.own(WindSettings)
    return FileSource("wind", COLUMNS, _read, (f"/proc/wind/{own.vane if own else None}",))


WIND = Observer("wind", COLUMNS, _prepare, OwnKeys(WindSettings, "How the wind is read."))
