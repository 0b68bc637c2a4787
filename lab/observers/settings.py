"""The settings of observers in lab.yml."""

from typing import Annotated

from pydantic import Field

from lab.names.model import StrictModel, explained_in
from lab.names.storage import DeviceName, PoolName

_Argument = Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x1f]+$")]


class MariadbSettings(StrictModel):
    """The client that reads MariaDB's counters, and its option file."""

    defaults_file: str = Field(
        description="Option file on the client's machine, with user and password under [client].",
        pattern=r"^/[^\x00-\x1f]+$",
        examples=["/etc/mysql/debian.cnf"],
    )
    client: tuple[_Argument, ...] = Field(
        ("mariadb",),
        min_length=1,
        description="Command of the client. Put words before it to run it elsewhere: [docker, exec, db, "
        "mariadb].",
    )


class ObserverOptions(StrictModel):
    """The options of the observers: what they watch, and how. A field's description is its help text."""

    model_config = explained_in("docs/observers.md")

    disks: tuple[DeviceName, ...] = Field(
        (), description="Devices to watch, such as sda, nvme0n1, loop3; default: every whole disk."
    )
    pools: tuple[PoolName, ...] = Field((), description="Pools to watch; default: every imported pool.")
    mariadb: MariadbSettings | None = Field(None, description="How the mariadb observer reads its counters.")
