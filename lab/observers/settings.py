"""What can be observed, as lab.yml says it."""

from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from lab.names import DeviceName, PoolName

ObserverName = Literal["arcstats", "zpool", "diskstats", "pressure", "cpu", "memory", "mariadb"]
OBSERVERS: tuple[ObserverName, ...] = get_args(ObserverName)

_Argument = Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x1f]+$")]


class MariadbSettings(BaseModel):
    """How MariaDB is asked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    defaults_file: str = Field(
        description="Option file, where the client runs, with user and password under [client].",
        pattern=r"^/[^\x00-\x1f]+$",
    )
    client: tuple[_Argument, ...] = Field(
        ("mariadb",),
        min_length=1,
        description="The client; with words before it, it runs elsewhere: [docker, exec, db, mariadb].",
    )


class ObserverSettings(BaseModel):
    """What is sampled each second. A field's description is its help text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    observe: tuple[ObserverName, ...] = Field(
        ("arcstats", "zpool", "diskstats", "pressure", "cpu", "memory"),
        description="Which observers run; what a host has not stays empty.",
    )
    disks: tuple[DeviceName, ...] = Field(
        (), description="Devices to watch, such as sda, nvme0n1, loop3; default: every whole disk."
    )
    pools: tuple[PoolName, ...] = Field((), description="Pools to watch; default: every imported one.")
    mariadb: MariadbSettings | None = Field(None, description="How MariaDB is asked, for that observer.")

    @model_validator(mode="after")
    def _can_ask(self) -> "ObserverSettings":
        if "mariadb" in self.observe and self.mariadb is None:
            raise ValueError("mariadb: is observed, so say how it is asked: mariadb: {defaults_file: /…}")
        for name, values in (("observe", self.observe), ("disks", self.disks), ("pools", self.pools)):
            if len(set(values)) < len(values):
                raise ValueError(f"{name}: names something twice; leave one of them out")
        return self
