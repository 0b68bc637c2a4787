"""Storage as evidence: its drives, caches and preconditions, and what differs between two of them."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.common.units import counted, listed
from plimsoll.rundir.facts import Storage, TunedValue

_Number = Annotated[int, Field(strict=True, ge=-(1 << 63), lt=1 << 63)]
_Truth = Annotated[bool, Field(strict=True)]
# A reading is of its instant; the report compares what came of both.
_READINGS = ("before", "after")
_WORN_PERCENT = 100
_TEMPERATURE = "temperature"
_TRIMS = ("enabled", "enabled-runtime", "static", "linked")

Value = str | int | float | bool | None
_Found = Iterator[tuple[FindingKind, str]]
# Names differ between any two backends and change nothing.
_NAMES = {"device", "serial", "pool", "dataset", "devices"}
_COLD = ("cold", "default")  # by default caches are emptied too, as far as that touches nobody else's
_OF_ONE = re.compile(r"(disks|datasets)\.(.+)\.([a-z0-9_]+)")


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
        """Return by how much a counter rose in the run; 0 if it did not, or if unknown."""
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


def drive_findings(runs: Sequence[MeasuredRun], scenario: str) -> Iterator[Finding]:
    """Yield what was wrong with the drives under `runs`, each once with all runs that it concerns.

    What a drive counts over its whole life counts only as far as it rose in a run.
    """
    found: dict[tuple[FindingKind, str, str], list[str]] = {}
    for run in runs:
        storage = run.directory.facts.storage
        if storage is None or storage.emulated:
            continue  # what is below an emulated disk is another one
        where = f" on {run.directory.facts.backend}" if run.directory.facts.backend else ""
        for kind, text in (*_of_drives(storage), *_of_trim(storage)):
            found.setdefault((kind, where, text), []).append(run.name)
    for (kind, where, text), names in found.items():
        yield Finding(kind, f"{scenario}{where}: {text} ({listed(names)}).", tuple(names), scenario)


def _of_drives(storage: Storage) -> _Found:
    for disk in disks_of(storage):
        if disk.drive is not None:
            yield from _of_drive(disk)


def _of_drive(disk: Disk) -> _Found:
    drive, name = disk.drive, disk.called
    assert drive is not None  # noqa: S101 for the types
    warned = dict.fromkeys((*drive.before.warnings, *drive.after.warnings))
    grave = [word for word in warned if word != _TEMPERATURE]
    failed = False in (drive.before.passed, drive.after.passed)
    # The only one of NVMe's warnings may be that it is hot, and then it does not pass either.
    if grave or (failed and _TEMPERATURE not in warned):
        said = f": {listed(grave)}" if grave else ""
        yield FindingKind.DRIVE_FAILING, f"{name} says of itself that it fails{said}"
    if errors := drive.risen("media_errors"):
        yield FindingKind.DRIVE_ERRORS, f"{name} counted {counted(errors, 'media error')} during a run"
    if drive.risen("throttles"):
        yield FindingKind.DRIVE_THROTTLED, f"{name} slowed itself down against heat during a run"
    elif drive.risen("over_critical_min"):
        yield FindingKind.DRIVE_THROTTLED, f"{name} was over its critical temperature during a run"
    limit, hottest = drive.warning_temperature_c, drive.hottest_c
    if limit and hottest is not None and hottest >= limit:
        yield FindingKind.DRIVE_HOT, f"{name} had {hottest} °C, of {limit} °C at which it warns"
    elif _TEMPERATURE in warned or drive.risen("over_warning_min"):
        yield FindingKind.DRIVE_HOT, f"{name} was over the temperature at which it warns"
    if drive.wear_percent is not None and drive.wear_percent >= _WORN_PERCENT:
        yield FindingKind.DRIVE_WORN, f"{name} has used {drive.wear_percent} % of its rated life"


def _of_trim(storage: Storage) -> _Found:
    """Yield that SSDs which support discards get none, as far as the lab can see."""
    if not any(disk.rotational is False and (disk.discard_max_bytes or 0) > 0 for disk in disks_of(storage)):
        return
    facts = storage.facts
    pools = facts.get("pools")
    off = [
        str(pool.get("pool"))
        for pool in (pools if isinstance(pools, list) else ())
        if isinstance(pool, dict) and pool.get("autotrim") == "off"
    ]
    if off:
        yield FindingKind.TRIM_OFF, f"autotrim of {listed(off)} is off"
    volume, timer = facts.get("volume"), facts.get("fstrim_timer")
    if pools or not isinstance(volume, dict) or not isinstance(timer, str):
        return
    if volume.get("discard") is False and volume.get("type") != "zfs" and timer not in _TRIMS:
        yield (
            FindingKind.TRIM_OFF,
            "the file system is mounted without discard, and fstrim.timer is not enabled",
        )


def described(storage: Storage) -> dict[str, object]:
    """Return all that is known of `storage`, for `differing`."""
    return {
        "emulated": storage.emulated,
        "clone": storage.clone,
        **summed_up(storage.facts),
        "tuning": tuned(storage.tuning),
        **({"cache": storage.cache.state} if storage.cache else {}),
        **({"precondition": said.model_dump(exclude={"rounds"})} if (said := storage.precondition) else {}),
    }


def tuned(tuning: Sequence[TunedValue]) -> dict[str, str]:
    """Return what was set, by key; disks and datasets by their place, since each backend has its own.

    Words that stand for those of any backend, such as `@web`, stay.

    What was there before is left out: it is not what the run was under.
    """
    places: dict[tuple[str, str], int] = {}
    found = {}
    for value in tuning:
        key = value.key
        if (of_one := _OF_ONE.fullmatch(key)) and not of_one[2].startswith("@"):
            kind, name, setting = of_one.groups()
            place = places.setdefault((kind, name), 1 + sum(kind == other for other, _ in places))
            key = f"{kind}.{place}.{setting}"
        found[key] = value.set
    return found


def steadiness_findings(runs: Sequence[MeasuredRun], scenario: str) -> Iterator[Finding]:
    """Yield which runs began on a volume that was not steady yet."""
    known = [(run, one.precondition) for run in runs if (one := run.directory.facts.storage)]
    restless = tuple(run.name for run, said in known if said and said.steady is False)
    if restless:
        text = f"{scenario}: the volume was not steady yet when {listed(restless)} began."
        yield Finding(FindingKind.NOT_STEADY, text, restless, scenario)


def overwritten(storage: Storage | None) -> str | None:
    """Return how a volume was filled and overwritten before the runs; None where nothing is known of it."""
    if storage is None:
        return None
    if (said := storage.precondition) is None:
        return "left as it was"
    return f"{said.fill_percent} % full, {said.threads} threads, blocks of {said.block_bytes} B"


def cache_state(storage: Storage) -> str | None:
    """Return the state of the caches (hostile) when a run began; None where nothing is known of them."""
    if storage.cache is None:
        return None
    return "cold" if storage.cache.state in _COLD else storage.cache.state


def differing(facts: Sequence[object], expected: Collection[str] = ()) -> list[tuple[str, tuple[Value, ...]]]:
    """Return the keys such as `disks.1.scheduler` whose values differ, with those of each; None is unknown.

    Disks, pools and datasets are compared by their place in the list, the first being 1, not by name.
    `expected` are keys that should differ, or may: `disks` stands for everything below it, and
    `disks.scheduler` for that of each disk.
    """
    known: list[Mapping[str, Value]] = [dict(flat(each)) for each in facts]
    found = []
    for key in dict.fromkeys(key for each in known for key in each):
        values = tuple(each.get(key) for each in known)
        if any(value != values[0] for value in values) and not is_beneath(key, expected):
            found.append((key, values))
    return found


def flat(value: object, key: str = "") -> Iterator[tuple[str, Value]]:
    """Yield each value with its key, such as `disks.1.scheduler`, without names of disks and datasets."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in _NAMES:
                yield from flat(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for place, inner in enumerate(value, start=1):
            yield from flat(inner, f"{key}.{place}")
    elif value is None or isinstance(value, str | int | float | bool):
        yield key, value


def is_beneath(key: str, expected: Collection[str]) -> bool:
    """Return whether a key is one of `expected`, or below it, with or without the places in lists."""
    without_places = ".".join(part for part in key.split(".") if not part.isdigit())
    return any(
        shown == given or shown.startswith(f"{given}.")
        for given in expected
        for shown in (key, without_places)
    )
