"""Names that bear the experiment's label. Only what bears such a name is ever changed or removed. Pure.

Names of experiments and backends have single hyphens only, so that `--` parts them without doubt:
`plimsoll-EXPERIMENT--BACKEND` is a folder, a pool, a Compose project, a virtual machine.
"""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

_PART = r"[a-z0-9]+(?:-[a-z0-9]+)*"
_NAME = re.compile(_PART)
_LONGEST = 16  # of each part: a saturator's label has 40, ext4's volume 16, and people read them
_OWN = re.compile(rf"plimsoll-({_PART})--({_PART})")


def _name(value: str) -> str:
    if len(value) > _LONGEST or not _NAME.fullmatch(value):
        raise ValueError(
            f"must be lower-case letters, digits and single hyphens, at most {_LONGEST}: nvme-p3600"
        )
    return value


LabName = Annotated[str, AfterValidator(_name)]


@dataclass(frozen=True)
class Label:
    """The experiment's label, and what is called by it."""

    experiment: str

    def __post_init__(self) -> None:
        """Raise ValueError where it could become anything but part of a name."""
        _name(self.experiment)

    def of(self, backend: str) -> str:
        """Return the name of everything of this backend: folder, pool, project, machine."""
        return f"plimsoll-{self.experiment}--{_name(backend)}"

    def saturator(self, backend: str) -> str:
        """Return the label of this backend's saturator, whose own names begin with `plimsoll-` too."""
        return f"{self.experiment}--{_name(backend)}"

    def backend(self, name: str) -> str | None:
        """Return the backend that `name` is called after, None where it is not of this experiment."""
        found = _OWN.fullmatch(name)
        return found[2] if found and found[1] == self.experiment else None


def is_own(name: str) -> bool:
    """Return whether `name` is called after a backend of some experiment."""
    return _OWN.fullmatch(name) is not None
