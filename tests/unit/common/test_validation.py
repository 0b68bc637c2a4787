"""What pydantic finds wrong is told in words for whoever wrote the settings."""

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from plimsoll.common.validation import problems_of, sentence_of


class _Gate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    limit: float = Field(gt=0)
    name: str = Field(default="", min_length=2)

    @field_validator("name")
    @classmethod
    def _known(cls, value: str) -> str:
        if value == "none":
            raise ValueError("p99 or p99.9")
        return value


class _Gates(BaseModel):
    gates: list[_Gate]


SENTENCES = [
    ("a key is missing", {"gates": [{}]}, "gates.0.limit: is missing"),
    ("a key that does not exist", {"gates": [{"limit": 1, "x": 1}]}, "gates.0.x: is not a known key"),
    ("a number too small", {"gates": [{"limit": 0}]}, "gates.0.limit: must be greater than 0"),
    ("a number where text belongs", {"gates": [{"limit": 1, "name": 5}]}, "must be text: put it in quotes"),
    ("our own words", {"gates": [{"limit": 1, "name": "none"}]}, "gates.0.name: p99 or p99.9"),
    ("two problems", {"gates": [{"limit": 0, "name": "a"}]}, "greater than 0; gates.0.name: is too short"),
    ("nothing of the kind", 5, "it: must hold further keys"),
]  # fmt: skip


@pytest.mark.parametrize(("why", "value", "says"), SENTENCES)
def test_a_problem_is_a_sentence(why: str, value: object, says: str) -> None:
    with pytest.raises(ValidationError) as caught:
        _Gates.model_validate(value)
    assert says in sentence_of(caught.value), why


def test_a_caller_says_what_a_strange_key_is() -> None:
    with pytest.raises(ValidationError) as caught:
        _Gate.model_validate({"limit": 1, "x": 2})
    assert [each.text for each in problems_of(caught.value, "is not an option")] == ["is not an option"]
