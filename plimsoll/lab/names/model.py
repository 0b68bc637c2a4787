"""The base of all settings in lab.yml: strict models, and a choice among the kinds of a registry."""

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema


class StrictModel(BaseModel):
    """Settings that do not change, and that refuse a key they do not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def explained_in(page: str) -> ConfigDict:
    """Return the configuration of settings that `page` of the documentation explains: errors name it."""
    return ConfigDict(json_schema_extra={"manual": page})


@dataclass(frozen=True)
class OneOf:
    """In an annotation: one of the models of a registry, chosen by the value of `key`.

    `models` is called when the model that holds the field is built, so a registry is complete by then.
    """

    key: str
    models: Callable[[], Iterable[type[BaseModel]]]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of a union of the registered models."""
        union: Any = reduce(operator.or_, self.models())
        return handler.generate_schema(Annotated[union, Field(discriminator=self.key)])


@dataclass(frozen=True)
class NameOf:
    """In an annotation: one of the names of a registry."""

    names: Callable[[], Iterable[str]]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of a choice among the registered names."""
        return core_schema.literal_schema(list(self.names()))
