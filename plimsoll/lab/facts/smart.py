"""What a drive says about its own health: smartctl's JSON, of NVMe, SATA and SAS alike. Pure.

Its form: https://www.smartmontools.org/wiki/JSON_output. Some figures of NVMe stand in no version's JSON, or
only in that of 7.4 and later, so the text, which `--json=o` puts beside it, is read too.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict


class Facts(BaseModel):
    """The base of all facts."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class DriveReading(Facts):
    """What a drive said of its health at one instant. Counters are of its whole life.

    `warnings`: NVMe's critical warnings, or the attributes of SATA that failed. `over_warning_min`,
    `over_critical_min`: minutes over its own limits of temperature. `throttles`: how often it slowed itself.
    """

    passed: bool | None = None
    warnings: tuple[str, ...] = ()
    temperature_c: int | None = None
    media_errors: int | None = None
    reallocated_sectors: int | None = None
    pending_sectors: int | None = None
    over_warning_min: int | None = None
    over_critical_min: int | None = None
    throttles: int | None = None


class DriveFacts(Facts):
    """A drive by its own account (SMART), before a run and after it.

    `wear_percent`: how much of its rated life is used. `power_loss_protection`: None if unknown.
    """

    protocol: str | None = None
    firmware: str | None = None
    wear_percent: int | None = None
    spare_percent: int | None = None
    power_loss_protection: bool | None = None
    warning_temperature_c: int | None = None
    before: DriveReading | None = None
    after: DriveReading | None = None


_LARGEST = 1 << 63
_TEXT = {
    "warning": re.compile(r"Warning  Comp\. Temp\. Threshold:\s+(-?\d{1,3}) Celsius"),
    "throttles": re.compile(r"Thermal Temp\. [12] Transition Count:\s+([\d,.]{1,20})"),
}
# By the names that smartctl's database of drives has for them; the number means another thing elsewhere.
_LEFT = re.compile(
    r"SSD_Life_Left.*|Wear_Leveling_Count|Media_Wearout_Indicator|Percent_Life_?(time_)?Remain(ing)?"
    r"|Remaining_Lifetime_Perc"
)
_USED = re.compile(r"Percent_Life_?(time_)?Used")  # raw
_UNCORRECTED = re.compile(r"Reported_Uncorrect|Uncorrectable_Error_C(nt|ount)|Offline_Uncorrectable")
_THROTTLED = re.compile(r"Thermal_Throttl.*")
_CAPACITOR = re.compile(r"Power_Loss_(Cap_Test|Protection.*)|Supercap_Status")
# The bits of NVMe's critical warning (NVM Express Base Specification 2.0, figure 207).
_WARNINGS = ("spare", "temperature", "reliability", "read-only", "backup", "persistent-memory")


class _Attribute(NamedTuple):
    """A line of SATA's table of attributes: normalised values fall as it gets worse, the raw one counts."""

    name: str
    value: int | None
    threshold: int | None
    raw: int | None
    failed: str


def command(device: str) -> list[str]:
    """Return the command that prints all that `device`, a checked name, says of itself. Pure."""
    return ["smartctl", "--json=o", "--all", f"/dev/{device}"]


def parse(printed: str) -> Mapping[str, Any]:
    """Return what smartctl printed; nothing if it is not a JSON object."""
    try:
        found = json.loads(printed)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def parse_serial(said: Mapping[str, Any]) -> str | None:
    """Return a drive's serial number; None where it says none."""
    return _word(said, "serial_number")


def drive_facts(said: Mapping[str, Any], write_cache: str | None) -> DriveFacts | None:
    """Return the facts of a drive before a run; None where it says nothing of its health.

    `write_cache` is the kernel's word (queue/write_cache) for whether there is a cache to flush.
    """
    reading = parse_reading(said)
    if reading is None:
        return None
    return DriveFacts(
        protocol=_word(said, "device", "protocol"),
        firmware=_word(said, "firmware_version"),
        wear_percent=_wear(said),
        spare_percent=_whole(said, _NVME, "available_spare"),
        power_loss_protection=_protected(said, write_cache),
        warning_temperature_c=_warning_temperature(said),
        before=reading,
    )


def parse_reading(said: Mapping[str, Any]) -> DriveReading | None:
    """Return what a drive says now; None where it says nothing of its health."""
    passed = _value_at(said, "smart_status", "passed")
    reading = DriveReading(
        passed=passed if isinstance(passed, bool) else None,
        warnings=_warnings(said),
        temperature_c=_whole(said, "temperature", "current"),
        media_errors=_media_errors(said),
        reallocated_sectors=_raw(said, re.compile("Reallocated_Sector_Ct|Retired_Block_Count")),
        pending_sectors=_raw(said, re.compile("Current_Pending_Sector")),
        over_warning_min=_whole(said, _NVME, "warning_temp_time"),
        over_critical_min=_whole(said, _NVME, "critical_comp_time"),
        throttles=_throttles(said),
    )
    return None if reading == DriveReading() else reading


_NVME = "nvme_smart_health_information_log"


def _value_at(said: object, *keys: str) -> object:
    for key in keys:
        said = said.get(key) if isinstance(said, dict) else None
    return said


def _whole(said: object, *keys: str) -> int | None:
    value = _value_at(said, *keys)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and -_LARGEST < value < _LARGEST else None  # type: ignore[operator,return-value]


def _word(said: object, *keys: str) -> str | None:
    value = _value_at(said, *keys)
    return value[:64] if isinstance(value, str) and value else None


def _attributes(said: Mapping[str, Any]) -> Iterator[_Attribute]:
    table = _value_at(said, "ata_smart_attributes", "table")
    for row in table if isinstance(table, list) else ():
        yield _Attribute(
            _word(row, "name") or "",
            _whole(row, "value"),
            _whole(row, "thresh"),
            _whole(row, "raw", "value"),
            _word(row, "when_failed") or "",
        )


def _raw(said: Mapping[str, Any], name: re.Pattern[str]) -> int | None:
    found = [one.raw for one in _attributes(said) if name.fullmatch(one.name) and one.raw is not None]
    return max(found) if found else None


def _lines(said: Mapping[str, Any]) -> str:
    lines = _value_at(said, "smartctl", "output")
    return "\n".join(line for line in lines if isinstance(line, str)) if isinstance(lines, list) else ""


def _wear(said: Mapping[str, Any]) -> int | None:
    """Return how much of its rated life is used, in percent, which may be over 100."""
    for keys in (
        ("endurance_used", "current_percent"),
        (_NVME, "percentage_used"),
        ("scsi_percentage_used_endurance_indicator",),
    ):
        if (used := _whole(said, *keys)) is not None:
            return used
    for one in _attributes(said):
        if _USED.fullmatch(one.name) and one.raw is not None:
            return one.raw
        if _LEFT.fullmatch(one.name) and one.value is not None:
            return max(100 - one.value, 0)
    return None


def _media_errors(said: Mapping[str, Any]) -> int | None:
    """Return how much could not be read or written right: of SAS the sum of its three counters."""
    if (nvme := _whole(said, _NVME, "media_errors")) is not None:
        return nvme
    counters = [
        _whole(said, "scsi_error_counter_log", kind, "total_uncorrected_errors")
        for kind in ("read", "write", "verify")
    ]
    known = [count for count in counters if count is not None]
    return sum(known) if known else _raw(said, _UNCORRECTED)


def _throttles(said: Mapping[str, Any]) -> int | None:
    """Return how often it slowed itself down so as not to get hotter, as far as it counts that."""
    found = [int(re.sub(r"\D", "", count) or 0) for count in _TEXT["throttles"].findall(_lines(said))]
    if found:
        return sum(found)
    # smartctl leaves out the lines of counters that are 0.
    return 0 if _lines(said) and _value_at(said, _NVME) else _raw(said, _THROTTLED)


def _warnings(said: Mapping[str, Any]) -> tuple[str, ...]:
    """Return NVMe's critical warnings, or SATA's attributes that are below their threshold now."""
    bits = _whole(said, _NVME, "critical_warning") or 0
    nvme = tuple(word for place, word in enumerate(_WARNINGS) if bits >> place & 1)
    return nvme or tuple(one.name for one in _attributes(said) if one.failed == "now")


def _warning_temperature(said: Mapping[str, Any]) -> int | None:
    """Return from which temperature on it is too hot by its own account."""
    for keys in (
        ("nvme_composite_temperature_threshold", "warning"),
        ("temperature", "op_limit_max"),
        ("temperature", "drive_trip"),
    ):
        if limit := _whole(said, *keys):
            return limit
    found = _TEXT["warning"].search(_lines(said))
    return int(found[1]) if found else None


def _protected(said: Mapping[str, Any], write_cache: str | None) -> bool | None:
    """Return whether what it has accepted survives a power failure; None if unknown.

    An NVMe drive that says of itself that it has a volatile cache has to be flushed, as one without
    protection: the kernel then says `write back`. Of SATA only a test of its capacitors tells.
    """
    if "backup" in _warnings(said):
        return False
    if _value_at(said, _NVME) is not None:
        return {"write through": True, "write back": False}.get(write_cache or "")
    for one in _attributes(said):
        if _CAPACITOR.fullmatch(one.name) and one.value is not None:
            return one.value > (one.threshold or 0)
    return None
