"""From lab.yml with factors to plain variants of its backends, each with a lab.yml of its own. Pure.

Variants of one backend share its disk and its clone, but where a level holds only for what is written under
it (record size, compression, the disk itself): for each such level there is a rig of its own. All rigs stand
side by side, so that runs can alternate between them freely.
"""

import itertools
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plimsoll.lab.experiment.factors.levels import joined, label_of, name_of, unlike
from plimsoll.lab.experiment.factors.places import needs_own_clone, set_level
from plimsoll.lab.experiment.factors.settings import BACKEND, Factor, Value

if TYPE_CHECKING:
    from plimsoll.lab.experiment.settings import Backend, Lab

_LONGEST_RIG = 16  # as a backend's name (names.labels)

Point = dict[str, Value]  # a value for each factor, by the factor's name


@dataclass(frozen=True)
class Variant:
    """A backend at one level of each factor.

    `name` is what runs call their backend; `rig` the backend in `lab`, a plain lab.yml with these levels,
    that they run on. `levels` are labels by factor, the backend's name among them, `of` all that are tried;
    empty without factors.
    """

    name: str
    rig: str
    levels: dict[str, str]
    lab: "Lab"
    of: dict[str, list[str]] = field(default_factory=dict)

    @property
    def settings(self) -> "Backend":
        """The settings of its backend, at these levels."""
        return self.lab.backend(self.rig)


def variants(lab: "Lab") -> list[Variant]:
    """Return all variants in the order of the file; without factors, one for each backend.

    Raises ValueError (pydantic's own too) for levels that cannot be set, which `factor_problems` names first.
    """
    levels = levels_in(lab)
    if not lab.factors:
        return [Variant(backend.name, backend.name, {}, lab) for backend in lab.backends]
    found: list[Variant] = []
    names, rigs = set[str](), {backend.name for backend in lab.backends}
    for at, backend in enumerate(lab.backends):
        factors = factors_of(lab, backend.name)
        called = _rigs(backend, factors, points(lab, backend.name), rigs)
        for point, rig in called:
            labels = {factor.name: label_of(factor.path or "", point[factor.name]) for factor in factors}
            name = unlike(joined(backend.name, [name_of(*each) for each in labels.items()]), names)
            names.add(name)
            plain = with_levels(lab, at, rig, [(factor, point[factor.name]) for factor in factors])
            found.append(Variant(name, rig, {BACKEND: backend.name, **labels}, plain, levels))
    return found


def rigs_in(lab: "Lab") -> dict[str, Variant]:
    """Return the first variant of each rig, by the rig's name: of what has to be made, and removed."""
    found: dict[str, Variant] = {}
    for variant in variants(lab):
        found.setdefault(variant.rig, variant)
    return found


def levels_in(lab: "Lab") -> dict[str, list[str]]:
    """Return the labels of all levels by factor, in the order of the file; empty without factors."""
    if not lab.factors:
        return {}
    own = {
        factor.name: [label_of(factor.path or "", value) for value in factor.values] for factor in lab.factors
    }
    return {BACKEND: [backend.name for backend in lab.backends], **own}


def factors_of(lab: "Lab", backend: str) -> list[Factor]:
    """Return the factors that are varied on a backend."""
    return [factor for factor in lab.factors if not factor.backends or backend in factor.backends]


def points(lab: "Lab", backend: str) -> list[Point]:
    """Return the combinations of values on a backend: those that are listed, else all."""
    factors = factors_of(lab, backend)
    if not lab.combinations:
        names = [factor.name for factor in factors]
        return [
            dict(zip(names, values, strict=True))
            for values in itertools.product(*(factor.values for factor in factors))
        ]
    found: list[Point] = []
    for combination in lab.combinations:
        point = {factor.name: combination[factor.name] for factor in factors}
        if point not in found:
            found.append(point)
    return found


def how_many(lab: "Lab") -> int:
    """Return the number of variants without making them."""
    if lab.combinations:
        return len(lab.combinations) * len(lab.backends)
    total = 0
    for backend in lab.backends:
        count = 1
        for factor in factors_of(lab, backend.name):
            count *= len(factor.values)
        total += count
    return total


def with_levels(lab: "Lab", at: int, rig: str, levels: Sequence[tuple[Factor, Value]]) -> "Lab":
    """Return a plain lab.yml of backend number `at`, called `rig`, at these levels. Raises ValueError."""
    said: dict[str, Any] = lab.model_dump(
        mode="json", exclude_unset=True, exclude={"factors", "combinations", "backends"}
    )
    own = lab.backends[at]
    said["backends"] = [deepcopy(own.model_dump(mode="json", exclude_unset=True)) | {"name": rig}]
    for factor, value in levels:
        set_level(said, own, factor.path or "", value)
    return type(lab).model_validate(said)


def _rigs(
    backend: "Backend", factors: Sequence[Factor], among: Sequence[Point], taken: set[str]
) -> list[tuple[Point, str]]:
    """Return each point with the name of its rig: the backend's own where one clone does for all."""
    kept = [factor for factor in factors if needs_own_clone(backend, factor.path or "")]
    labels = [tuple(label_of(factor.path or "", point[factor.name]) for factor in kept) for point in among]
    if len(set(labels)) == 1:
        return [(point, backend.name) for point in among]
    called: dict[tuple[str, ...], str] = {}
    for each in labels:
        if each not in called:
            whole = joined(
                backend.name, [name_of(factor.name, label) for factor, label in zip(kept, each, strict=True)]
            )
            short = whole if len(whole) <= _LONGEST_RIG else backend.name[: _LONGEST_RIG - 3].rstrip("-")
            called[each] = unlike(short, taken, _LONGEST_RIG)
            taken.add(called[each])
    return [(point, called[each]) for point, each in zip(among, labels, strict=True)]
