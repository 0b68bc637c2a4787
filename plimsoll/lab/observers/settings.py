"""The settings of observers: their keys in lab.yml, with the file that the lab lets the fsync probe write."""

from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import Field, PrivateAttr, model_validator

from plimsoll.lab.machine import Machine
from plimsoll.lab.names import DeviceName, Folder, PoolName, StrictModel, explained_in
from plimsoll.lab.steps.step import Command, Remains

_PAGE = r"^(/|http://[^/])[^\x00-\x20]*$"
_Argument = Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x1f]+$")]
_REMOVE_S = 60.0  # a disk that stalls may keep it waiting


class MariadbSettings(StrictModel):
    """The client that reads MariaDB's counters, and its option file."""

    defaults_file: str = Field(
        description="Option file on the client's machine, with `user` and `password` under `[client]`. "
        "Nothing secret is ever "
        "on a command line.",
        pattern=r"^/[^\x00-\x1f]+$",
        examples=["/etc/mysql/debian.cnf"],
    )
    client: tuple[_Argument, ...] = Field(
        ("mariadb",),
        min_length=1,
        description="Command of the client. Put words before it to run it elsewhere: [docker, exec, db, "
        "mariadb].",
    )


class PhpSettings(StrictModel):
    """How PHP-FPM and OPcache are asked for their state, by the host itself."""

    fastcgi: str | None = Field(
        None,
        description="Socket of the pool, or of its `pm.status_listen`: `/run/php/php8.2-fpm.sock`, "
        "`127.0.0.1:9000`.",
        pattern=r"^(/[^\x00-\x1f]+|[^/\s:]+:[0-9]{1,5}|\[[0-9a-fA-F:]+\]:[0-9]{1,5})$",
        examples=["/run/php/php8.2-fpm.sock"],
    )
    status: str = Field(
        "/status",
        description="The pool's `pm.status_path`, or its address on the host: "
        "`http://127.0.0.1/status?json`.",
        pattern=_PAGE,
    )
    opcache: str | None = Field(
        None,
        description="Script that prints opcache_get_status(false) as JSON: its path on PHP's machine, or "
        "its address.",
        pattern=_PAGE,
    )

    @model_validator(mode="after")
    def _can_be_asked(self) -> "PhpSettings":
        by_socket = [page for page in (self.status, self.opcache) if page and not page.startswith("http")]
        if by_socket and self.fastcgi is None:
            raise ValueError(f"fastcgi: {by_socket[0]} is asked for at a socket: /run/php/php8.2-fpm.sock")
        return self


class FsyncProbeSettings(StrictModel):
    """The folder that the fsync probe writes into."""

    folder: Folder | None = Field(
        None,
        description="Folder on the disk under test, no link; default: that of the clone's database or data.",
        examples=["/tank/site"],
    )


@dataclass(frozen=True)
class ProbeFile:
    """The place of the probe's file, which is found and removed by its name.

    It has a folder on the disk, and the name of everything that belongs to the backend.
    """

    folder: str
    backend_name: str

    @property
    def name(self) -> str:
        """The file's name."""
        return f"{self.backend_name}.fsync"

    @property
    def path(self) -> str:
        """The file's path."""
        return f"{self.folder.rstrip('/')}/{self.name}"

    async def find(self, machine: Machine, backend: str) -> list[Remains]:
        """Return what a crash left of it. Looks only. Raises MachineError."""
        look = ["find", self.path, "-maxdepth", "0", "-type", "f"]
        if not (await machine.run(look, check=False)).out:
            return []
        remove = Command("remove the probe's file", ("rm", "-f", "--", self.path), timeout_s=_REMOVE_S)
        return [Remains(f"the file of the fsync probe {self.path}", backend, (remove,))]


@dataclass(frozen=True)
class FsyncProbe:
    """A place, and the machine whose processes may reach its disk: one under the disk's limits."""

    machine: Machine
    place: ProbeFile


class ObserverOptions(StrictModel):
    """The options of the observers: what they watch, and how. A field's description is its help text."""

    model_config = explained_in("docs/observers.md")

    disks: tuple[DeviceName, ...] = Field(
        (), description="Devices to watch, such as sda, nvme0n1, loop3; default: every whole disk."
    )
    pools: tuple[PoolName, ...] = Field((), description="Pools to watch; default: every imported pool.")
    mariadb: MariadbSettings | None = Field(None, description="How the mariadb observer reads its counters.")
    php: PhpSettings | None = Field(None, description="How the php observer asks PHP-FPM and OPcache.")
    fsync: FsyncProbeSettings = Field(
        FsyncProbeSettings(folder=None), description="Where the fsync observer writes."
    )
    _probed: FsyncProbe | None = PrivateAttr(None)

    @property
    def probed(self) -> FsyncProbe | None:
        """The file that the fsync probe writes, which is not a key of lab.yml: the lab names it."""
        return self._probed

    def probing(self, probed: FsyncProbe | None) -> Self:
        """Return these options, with the file that the fsync probe is to write."""
        found = self.model_copy()
        found._probed = probed
        return found
