"""Reads what files and programs say about a host. Pure; what makes no sense gives None or nothing."""

import re

from plimsoll.lab.facts.model import VolumeFacts

# The properties of a dataset that are kept and that tuning may set.
PROPERTIES = (
    *("compression", "recordsize", "primarycache", "secondarycache", "atime", "relatime", "xattr"),
    *("logbias", "sync"),
)
# Those that are kept of a volume besides; they cannot be set once it is made.
VOLUME_PROPERTIES = ("volblocksize",)
_GROUPS = re.compile(
    r"(mirror|raidz\d?|draid\d?[\w:]*|spare|replacing|logs?|cache|special|dedup|spares)(-\d+)?"
)
_STATES = {"ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "UNAVAIL", "REMOVED", "AVAIL", "INUSE"}


def line(text: str | None) -> str | None:
    """Return the first line without its white space, None where there is nothing."""
    return (text or "").strip().split("\n")[0].strip() or None


def whole(text: str | None) -> int | None:
    """Return the number that stands alone in `text`."""
    found = re.fullmatch(r"-?[0-9]{1,20}", (text or "").strip())
    return int(found[0]) if found else None


def chosen(text: str | None) -> str | None:
    """Return the word in brackets: `always [madvise] never` → madvise; a word that stands alone is it."""
    words = (text or "").split()
    bracketed = [word[1:-1] for word in words if word.startswith("[") and word.endswith("]")]
    if bracketed:
        return bracketed[0] or None
    return words[0] if len(words) == 1 else None


def cpu_model(cpuinfo: str | None) -> str | None:
    """Return the processor's name, from /proc/cpuinfo; ARM's has none."""
    found = re.search(r"^model name[ \t]*:[ \t]*(.+)$", cpuinfo or "", re.MULTILINE)
    return found[1].strip() or None if found else None


def cpu_count(cpuinfo: str | None) -> int | None:
    """Return the number of processors in /proc/cpuinfo."""
    return len(re.findall(r"^processor[ \t]*:", cpuinfo or "", re.MULTILINE)) or None


def properties(text: str) -> dict[str, dict[str, tuple[str, str]]]:
    """Return dataset → property → (value, source) of `zfs get -H -o name,property,value,source`."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for row in text.split("\n"):
        fields = row.split("\t")
        if len(fields) == 4:
            name, key, value, source = fields
            found.setdefault(name, {})[key] = (value, source.strip())
    return found


def pool_property(text: str, name: str) -> str | None:
    """Return the value of property `name` in what `zpool get` printed, with or without a header."""
    for row in text.split("\n"):
        words = row.split()
        if len(words) >= 3 and words[1] == name and words[2] != "-":
            return words[2]
    return None


def volume(text: str) -> VolumeFacts | None:
    """Return type and discarding of a file system: `ext4 rw,relatime,discard`; None where there is none."""
    words = text.split()
    if len(words) != 2:
        return None
    options = {option.partition("=")[0] for option in words[1].split(",")}
    return VolumeFacts(type=words[0], discard="discard" in options and "nodiscard" not in options)


def ratio(text: str | None) -> float | None:
    """Return a compress ratio: `1.52x` (rounded) or `1.52` (with -p)."""
    found = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)x?", (text or "").strip())
    return float(found[1]) if found else None


def pool_layout(status: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a pool's layout as `zpool status` shows it, and its devices in order.

    The layout has one entry a group, `mirror × 2`, `disk` for a device that stands alone, after `logs`,
    `cache` or the like where it is of that class; so two pools of other disks compare as equal.
    """
    groups: list[list[str | int]] = []
    devices: list[str] = []
    class_, group_depth = "", -1
    for row, (depth, name) in enumerate(_config(status)):
        if depth == 0:  # the pool itself, then classes of devices beside it
            class_, group_depth = f"{name} " if row else "", -1
        elif found := _GROUPS.fullmatch(name):
            if group_depth < 0 or depth <= group_depth:
                groups.append([class_ + found[1], 0])
                group_depth = depth
        else:
            devices.append(name)
            if 0 <= group_depth < depth:
                groups[-1][1] = int(groups[-1][1]) + 1
            else:
                group_depth = -1
                groups.append([f"{class_}disk", 0])
    return tuple(f"{kind} × {count}" if count else str(kind) for kind, count in groups), tuple(devices)


def _config(status: str) -> list[tuple[int, str]]:
    """Return depth and name of each line of the table below `config:`; the pool's own depth is 0."""
    rows: list[tuple[int, str]] = []
    inside = False
    for text in status.split("\n"):
        words = text.split()
        if words[:2] == ["NAME", "STATE"]:
            inside = True
        elif inside and words and words[0] == "errors:":
            break
        elif inside and words and (len(words) == 1 or words[1] in _STATES):
            indent = len(text.lstrip("\t")) - len(text.lstrip("\t").lstrip(" "))
            rows.append((indent // 2, words[0]))
    return rows
