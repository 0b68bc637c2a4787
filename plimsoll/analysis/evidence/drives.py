"""The drives under the runs: failing, throttled, hot, worn, or not told what was deleted. Pure."""

from collections.abc import Iterator, Sequence

from plimsoll.analysis.evidence.drive_facts import Disk, disks_of
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.run import RunEvidence
from plimsoll.common.units import counted, listed
from plimsoll.rundir.facts import Storage

_WORN_PERCENT = 100
_TEMPERATURE = "temperature"
_TRIMS = ("enabled", "enabled-runtime", "static", "linked")

_Found = Iterator[tuple[FindingKind, str]]


def drive_findings(runs: Sequence[RunEvidence], scenario: str) -> Iterator[Finding]:
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
    """Yield that SSDs which can be told what was deleted are not, by anything that the lab can see."""
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
