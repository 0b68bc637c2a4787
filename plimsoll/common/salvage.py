"""All problems of a value at once: what is wrong is left out, until what remains is a model. Pure.

A model that has a wrong key is not checked any further: neither by its own checks between keys, nor by those
that need the whole. So each wrong key is cut out, and the rest is looked at again.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from plimsoll.common.hints import Hints
from plimsoll.common.problems import Location, Problem, problems_of, texts_of

_MOST_ROUNDS = 12

Model = TypeVar("Model", bound=BaseModel)
Further = Callable[[Model], Iterable[tuple[Location, str]]]


class Inspection(Generic[Model]):
    """Finds the problems of `value` as a `model`: `problems`, and `found` where there are none.

    Problems are at the keys of `value`, without pydantic's tags of unions; `said` has pydantic's own
    location for each of its problems.
    """

    def __init__(
        self, value: Any, model: type[Model], further: Further[Model], stand_ins: Mapping[str, Any]
    ) -> None:
        """`stand_ins`: values by place (`backends.*.clone`) for what is needed to look any further."""
        self._value, self._model, self._stand_ins = value, model, stand_ins
        self._cut: set[Location] = set()
        self._names: set[str] = set()
        self.problems: list[Problem] = []
        self.said: dict[Location, Location] = {}
        self.found: Model | None = None
        for _ in range(_MOST_ROUNDS):
            try:
                found = model.model_validate(self._rest(value, ()))
            except ValidationError as error:
                if not self._take(problems_of(error, model=model)):
                    return
                continue
            self._further(further(found))
            self.found = None if self.problems else found
            return

    def _take(self, problems: list[Problem]) -> bool:
        """Note `problems`, and cut out what is wrong. Return whether there is a rest to look at."""
        by_place: dict[Location, list[Problem]] = {}
        for each in problems:
            at = self._place(each.at)
            self.said.setdefault(at, each.at)
            by_place.setdefault(at, []).append(each)
        for at, some in by_place.items():
            if not any(_follows(some[0], at, cut) for cut in self._cut):
                self.problems += [Problem(at, some[0].kind, text) for text in texts_of(some)]
        for at in by_place:
            self._remove(at)
        return () not in self._cut

    def _remove(self, at: Location) -> None:
        """Cut out `at`, or what it lies in where it is not there, or is gone and needed."""
        while at and (at in self._cut or not self._is_there(at)):
            if _pattern(at) in self._stand_ins:
                break
            at = at[:-1]
        gone = self._of(at)
        if isinstance(gone, dict) and isinstance(gone.get("name"), str):
            self._names.add(gone["name"])
        self._cut.add(at)

    def _further(self, found: Iterable[tuple[Location, str]]) -> None:
        """Note what is wrong between keys, but for what is only so since something was cut out."""
        for place, text in found:
            at = self._place(place)
            follows = any(_covers(cut, at) or _covers(at, cut) for cut in self._cut)
            if not follows and not any(name in text for name in self._names):
                self.problems.append(Problem(at, "further", text))

    def _rest(self, value: Any, at: Location) -> Any:
        if not any(_covers(at, cut) for cut in self._cut):
            return value
        if isinstance(value, dict):
            rest = {
                key: self._rest(one, (*at, key)) for key, one in value.items() if (*at, key) not in self._cut
            }
            cut = {one[-1]: _pattern(one) for one in self._cut if one and one[:-1] == at}
            return rest | {key: self._stand_ins[name] for key, name in cut.items() if name in self._stand_ins}
        if isinstance(value, list):
            return [self._rest(value[i], (*at, i)) for i in self._left(value, at)]
        return value

    def _left(self, value: list[Any], at: Location) -> list[int]:
        return [i for i in range(len(value)) if (*at, i) not in self._cut]

    def _place(self, said: Location) -> Location:
        """Return pydantic's location as that of the value: no tags, and places in lists as they are there."""
        at: Location = ()
        here = self._value
        for i, part in enumerate(said):
            if isinstance(here, list) and isinstance(part, int):
                left = self._left(here, at)
                part = left[part] if part < len(left) else part
            elif not (isinstance(here, dict) and (part in here or self._is_key(said[: i + 1]))):
                continue
            at, here = (*at, part), self._step(here, part)
        return at

    def _is_key(self, said: Location) -> bool:
        """Return whether the last part of `said` is a key that is not there, and no tag."""
        return isinstance(said[-1], str) and said[-1] in _keys(self._model, said[:-1])

    def _is_there(self, at: Location) -> bool:
        above = self._of(at[:-1])
        if isinstance(above, list):
            return isinstance(at[-1], int) and at[-1] < len(above)
        return isinstance(above, dict) and at[-1] in above

    def _of(self, at: Location) -> Any:
        here = self._value
        for part in at:
            here = self._step(here, part)
        return here

    @staticmethod
    def _step(here: Any, part: str | int) -> Any:
        try:
            return here[part]
        except (KeyError, IndexError, TypeError):
            return None


def _follows(problem: Problem, at: Location, cut: Location) -> bool:
    """Return whether `problem` may be there only since `cut` was cut out."""
    if problem.kind == "value_error" and _covers(at, cut) and at != cut:
        return str(cut[-1]) in problem.text
    return _covers(cut, at) or _covers(at, cut)


def _pattern(at: Location) -> str:
    return ".".join("*" if isinstance(part, int) else part for part in at)


def _covers(outer: Location, inner: Location) -> bool:
    return inner[: len(outer)] == outer


def _keys(model: type[BaseModel], at: Location) -> list[str]:
    return Hints(model).keys(at)
