"""What is wrong with the factors of a lab.yml: each with its place, and all at once. Pure."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

from pydantic import ValidationError

from plimsoll.common.validation import Location, problems_of
from plimsoll.lab.clones import driver_of
from plimsoll.lab.experiment.factors.levels import label_of
from plimsoll.lab.experiment.factors.places import needs_own_clone
from plimsoll.lab.experiment.factors.settings import BACKEND, EVERY, SHORT, Factor
from plimsoll.lab.experiment.factors.variants import factors_of, how_many, variants, with_levels

if TYPE_CHECKING:
    from plimsoll.lab.experiment.settings import Lab

MOST_VARIANTS = 256

Problems = Iterator[tuple[Location, str]]


def factor_problems(lab: "Lab") -> Problems:
    """Yield the problems of `factors` and `combinations`: where, and what to do."""
    if not lab.factors:
        if lab.combinations:
            yield ("combinations",), "there are no factors to combine: add factors, or leave it out"
        return
    found = [*_factors(lab), *_combinations(lab)]
    yield from found
    if found:
        return
    if (count := how_many(lab)) > MOST_VARIANTS:
        yield (
            ("factors",),
            f"{count:,} combinations of levels and backends are too many: at most {MOST_VARIANTS}; list "
            "those that you want in combinations",
        )
        return
    try:
        variants(lab)
    except ValidationError as error:
        yield from (
            (("factors",), f"do not fit together: {each.key}: {each.text}") for each in problems_of(error)
        )


def _factors(lab: "Lab") -> Problems:
    first: dict[str, int] = {}
    backends = {backend.name for backend in lab.backends}
    for i, factor in enumerate(lab.factors):
        at: Location = ("factors", i)
        if factor.name == BACKEND:
            yield (*at, "name"), f"{BACKEND} is a factor already: give this one another name"
        if factor.name in first:
            yield (*at, "name"), f"{factor.name} is already the name of factors.{first[factor.name]}"
        first.setdefault(factor.name, i)
        for j, name in enumerate(factor.backends):
            if name not in backends:
                yield (*at, "backends", j), f"{name} is not one of backends: {', '.join(sorted(backends))}"
        if factor.path is None:
            yield (*at, "name"), _unknown(factor.name)
            continue
        labels = [label_of(factor.path, value) for value in factor.values]
        for j, label in enumerate(labels):
            if label in labels[:j]:
                yield (*at, "values", j), f"{label} is already factors.{i}.values.{labels.index(label)}"
        yield from _levels(lab, i, factor)


def _levels(lab: "Lab", i: int, factor: Factor) -> Problems:
    """Try each level by itself on each backend."""
    said: set[tuple[Location, str]] = set()
    for number, backend in enumerate(lab.backends):
        if factor not in factors_of(lab, backend.name):
            continue
        key: Location = ("factors", i, "key" if factor.key else "name")
        if needs_own_clone(backend, factor.path or "") and not driver_of(backend.clone).is_ours:
            text = f"{backend.name}: what is written keeps it, and {backend.clone.driver} makes no clone anew"
            yield key, f"{text}: name the other backends in factors.{i}.backends"
            continue
        for j, value in enumerate(factor.values):
            found: list[tuple[Location, str]] = []
            try:
                with_levels(lab, number, backend.name, [(factor, value)])
            except ValidationError as error:
                found = [
                    (key, _unfit(factor.path or "", backend.name))
                    if each.kind == "extra_forbidden"
                    else (("factors", i, "values", j), f"{label_of(factor.path or '', value)}: {each.text}")
                    for each in problems_of(error)
                ]
            except ValueError as error:
                found = [(key, str(error))]
            yield from (each for each in found if each not in said)
            said.update(found)


def _combinations(lab: "Lab") -> Problems:
    factors = {factor.name: factor for factor in lab.factors}
    for i, combination in enumerate(lab.combinations):
        at: Location = ("combinations", i)
        for name, value in combination.items():
            if name not in factors:
                near = get_close_matches(name, factors, 1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(factors)}"
                yield (*at, name), f"is not one of factors: {hint}"
            elif value not in factors[name].values:
                shown = ", ".join(map(str, factors[name].values))
                yield (*at, name), f"{value} is none of the values of {name}: {shown}"
        if missing := [name for name in factors if name not in combination]:
            yield at, f"says nothing of {', '.join(missing)}: give each factor a value"


def _unfit(key: str, backend: str) -> str:
    """Return the sentence on a key that this backend has not, or none has."""
    near = get_close_matches(key.rpartition(".")[2], SHORT, 1)
    meant = SHORT[near[0]].replace(f".{EVERY}.", ".NAME.") if near else key
    if near and near[0] == key.rpartition(".")[2]:
        return f"{backend} has no {key}: name the backends that have in backends"
    hint = f"; did you mean {meant}?" if near else ""
    return f"{key} is not a known key{hint} (see docs/factors.md)"


def _unknown(name: str) -> str:
    """Return the sentence on a name that is no key."""
    near = get_close_matches(name.replace("-", "_"), SHORT, 1)
    return (
        f"{name} is no key that is known by its name alone: "
        + (f"did you mean {near[0]}? Else " if near else "")
        + "say which key of lab.yml it sets in key (see docs/factors.md)"
    )
