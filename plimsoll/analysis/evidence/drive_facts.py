"""The facts of drives in run.json (lab/facts/smart.py writes them): checked, since they are hostile."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from plimsoll.rundir.facts import Storage

_Number = Annotated[int, Field(strict=True, ge=-(1 << 63), lt=1 << 63)]
_Truth = Annotated[bool, Field(strict=True)]
# A reading is of its instant; the report compares what came of both.
_READINGS = ("before", "after")


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Reading(_Model):
    """What a drive said at one instant; None is unknown."""

    passed: _Truth | None = None
    warnings: tuple[str, ...] = ()
    temperature_c: _Number | None = None
    media_errors: _Number | None = None
    over_warning_min: _Number | None = None
    over_critical_min: _Number | None = None
    throttles: _Number | None = None


class Drive(_Model):
    """A drive before a run and after it."""

    wear_percent: _Number | None = None
    warning_temperature_c: _Number | None = None
    before: Reading = Reading()
    after: Reading = Reading()

    @property
    def hottest_c(self) -> int | None:
        """The higher of both temperatures."""
        known = [one.temperature_c for one in (self.before, self.after) if one.temperature_c is not None]
        return max(known) if known else None

    def risen(self, counter: str) -> int:
        """Return by how much a counter rose in the run; 0 where it did not, or nobody knows."""
        before, after = getattr(self.before, counter), getattr(self.after, counter)
        return 0 if before is None or after is None else max(after - before, 0)


class Disk(_Model):
    """A disk, and the drive that it is; names are hostile."""

    device: str
    model: str | None = None
    rotational: _Truth | None = None
    discard_max_bytes: _Number | None = None
    drive: Drive | None = None

    @property
    def called(self) -> str:
        """The kernel's name and the maker's."""
        return f"{self.device} ({self.model})" if self.model else self.device


def disks_of(storage: Storage) -> list[Disk]:
    """Return the disks under a run, without those that no lab of ours wrote down."""
    return list(_valid(storage.facts.get("disks")))


def _valid(listed: object) -> Iterator[Disk]:
    for one in listed if isinstance(listed, list) else ():
        try:
            # What is null is absent.
            yield Disk.model_validate(_without_nulls(one))
        except ValidationError:
            continue


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return value


def summed_up(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a host with both readings of each drive made one, as they are compared. Pure."""
    listed = facts.get("disks")
    if not isinstance(listed, list):
        return dict(facts)
    return {**facts, "disks": [_summed_up(one) if isinstance(one, dict) else one for one in listed]}


def _summed_up(disk: dict[str, Any]) -> dict[str, Any]:
    said = disk.get("drive")
    valid = next(_valid([disk]), None)
    if not isinstance(said, dict) or valid is None or valid.drive is None:
        return disk
    drive = valid.drive
    steady = {key: value for key, value in said.items() if key not in _READINGS}
    last = drive.after if drive.after != Reading() else drive.before
    one = {
        "temperature_c": drive.hottest_c,
        "media_errors": last.media_errors,
        "throttled": bool(drive.risen("throttles") or drive.risen("over_critical_min")),
        "warnings": list(last.warnings),
    }
    return {**disk, "drive": {**steady, **one}}
