"""The settings of observers in lab.yml."""

from typing import Annotated, Self

from pydantic import Field, PrivateAttr

from lab.names.model import StrictModel, explained_in
from lab.names.storage import DeviceName, Folder, PoolName
from lab.observers.fsync_place import Probed

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


class FsyncProbeSettings(StrictModel):
    """The folder that the fsync probe writes into."""

    folder: Folder | None = Field(
        None,
        description="Folder on the disk under test, no link; default: that of the clone's database or data.",
        examples=["/tank/site"],
    )


class ObserverOptions(StrictModel):
    """The options of the observers: what they watch, and how. A field's description is its help text."""

    model_config = explained_in("docs/observers.md")

    disks: tuple[DeviceName, ...] = Field(
        (), description="Devices to watch, such as sda, nvme0n1, loop3; default: every whole disk."
    )
    pools: tuple[PoolName, ...] = Field((), description="Pools to watch; default: every imported pool.")
    mariadb: MariadbSettings | None = Field(None, description="How the mariadb observer reads its counters.")
    fsync: FsyncProbeSettings = Field(
        FsyncProbeSettings(folder=None), description="Where the fsync observer writes."
    )
    _probed: Probed | None = PrivateAttr(None)

    @property
    def probed(self) -> Probed | None:
        """The file that the fsync probe writes, which no key of lab.yml tells: the lab names it."""
        return self._probed

    def probing(self, probed: Probed | None) -> Self:
        """Return these options, with the file that the fsync probe is to write."""
        found = self.model_copy()
        found._probed = probed
        return found
