"""`factors` of lab.yml: what to vary. A field's description stands in docs/factors.md."""

from typing import Annotated

from pydantic import BaseModel, Field

from plimsoll.lab.clones import DRIVERS
from plimsoll.lab.hosts import Name
from plimsoll.lab.names import StrictModel
from plimsoll.lab.tuning.keys import DatasetTuning, DiskTuning, Tuning, VmTuning, ZfsTuning

BACKEND = "backend"  # the factor that there is without saying so
EVERY = "*"  # in a key: each disk, or each dataset, of the backend

Value = str | int | float | bool | None
FactorName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]


def _short(prefix: str, model: type[BaseModel]) -> dict[str, str]:
    return {name: f"{prefix}.{name}" for name in model.model_fields}


_GROUPS = {"disks", "datasets", "zfs", "vm"}
# What is called by one word: each tuning key, and what a clone takes at its start.
SHORT: dict[str, str] = {
    **_short(f"tuning.disks.{EVERY}", DiskTuning),
    **_short(f"tuning.datasets.{EVERY}", DatasetTuning),
    **_short("tuning.zfs", ZfsTuning),
    **_short("tuning.vm", VmTuning),
    **{name: key for name, key in _short("tuning", Tuning).items() if name not in _GROUPS},
    **{name: f"clone.{name}" for driver in DRIVERS for name in sorted(driver.at_start)},
    "arc": "tuning.zfs.zfs_arc_max",
    "send_rate": "saturator.rate_bytes_per_s",
}


class Factor(StrictModel):
    """One thing to vary, and its levels."""

    name: FactorName = Field(
        description="Name of the factor in figures. One that is in the list below needs no key."
    )
    key: str | None = Field(
        None,
        description="Key of lab.yml to set: below `tuning`, `disk`, `clone` or `saturator` of a backend, or "
        "below `scenarios.NAME`.",
        max_length=300,
    )
    values: list[Value] = Field(
        min_length=2,
        max_length=64,
        description="Values to try. The first is what the others are held against.",
    )
    backends: list[Name] = Field([], description="Backends to vary it on. Default: all.")

    @property
    def path(self) -> str | None:
        """The key that it sets; None where its name alone does not say which."""
        return self.key or SHORT.get(self.name.replace("-", "_"))
