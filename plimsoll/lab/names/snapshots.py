"""Names with the experiment's label. Only what bears such a name is ever destroyed. Pure."""

import re

_LABEL = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_DIGITS = 6


def checked_label(label: str) -> str:
    """Return `label`. Raises ValueError where it could become anything but part of a name."""
    if not _LABEL.fullmatch(label):
        raise ValueError(
            "a label has up to 40 lower-case letters, digits and '-', and does not begin with '-'"
        )
    return label


def own_name(label: str) -> str:
    """Return the name, or the first part of the name, of everything with this label."""
    return f"plimsoll-{checked_label(label)}"


def snapshot_name(label: str, number: int) -> str:
    """Return the name of the snapshot with this number."""
    return f"{own_name(label)}-{number:0{_DIGITS}d}"


def is_own_snapshot(name: str, label: str) -> bool:
    """Return whether `name` is a snapshot of this experiment, and not of one whose label begins alike."""
    return bool(re.fullmatch(rf"{re.escape(own_name(label))}-[0-9]{{{_DIGITS}}}", name))
