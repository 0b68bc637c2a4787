"""Settings models become command-line options: click's for `plimsoll scenario`, argparse's for Locust."""

import types
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin

import click
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from plimsoll.common.problems import Problem, problems_of
from plimsoll.scenarios.running.errors import SettingsError
from plimsoll.scenarios.running.settings import SiteSettings

if TYPE_CHECKING:
    from locust.argument_parser import LocustArgumentParser

Settings = TypeVar("Settings", bound=BaseModel)

# Settings for which Locust has options of its own.
_LOCUST_OPTIONS = {"target": "host", "users": "num_users"}


def flag(name: str) -> str:
    """Return the option of a field: `timeout_s` → `--timeout-s`."""
    return "--" + name.replace("_", "-")


def click_options(model: type[BaseModel]) -> list[click.Option]:
    """Return one option a field. Values stay text: the model checks them, all at once."""
    options = []
    for name, field in model.model_fields.items():
        text = field.description or ""
        if value_type(field) is bool:
            options.append(click.Option([flag(name), name], is_flag=True, default=None, help=text))
            continue
        shown = "" if field.is_required() or _own_words(field.default) else f" Default: {field.default}."
        option = click.Option(
            [flag(name), name], metavar=_metavar(field), help=text + shown, required=field.is_required()
        )
        options.append(option)
    return options


def add_to_locust(model: type[BaseModel], parser: "LocustArgumentParser") -> None:
    """Give Locust's parser, and so its web form, one option a field that it has not itself."""
    for name, field in model.model_fields.items():
        if name in _LOCUST_OPTIONS:
            continue
        default = None if field.is_required() else field.default
        if value_type(field) is bool:
            parser.add_argument(flag(name), dest=name, action="store_true", help=field.description)
        else:
            parser.add_argument(
                flag(name), dest=name, default="" if default is None else str(default), help=field.description
            )


def from_locust(model: type[Settings], options: Mapping[str, Any], host: str | None) -> Settings:
    """Return the settings in Locust's options; `host` is its option for the target.

    Raises SettingsError.
    """
    values = {
        name: value
        for name, field in model.model_fields.items()
        if name != "target" and not _is_default(field, value := options.get(_LOCUST_OPTIONS.get(name, name)))
    }
    return validated(model, values | {"target": host})


def validated(model: type[Settings], options: Mapping[str, Any]) -> Settings:
    """Return `options` as a checked model; None and empty text mean the default. Raises SettingsError."""
    values = {name: value for name, value in options.items() if value is not None and value != ""}
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise SettingsError("\n".join(_sentence(model, each) for each in problems_of(error))) from None


def cautions(settings: SiteSettings) -> list[str]:
    """Return a sentence on each option that was given and has no effect beside the others."""
    return [f"Caution: {flag(key)}: {why}" for key, why in settings.idle()]


def _sentence(model: type[BaseModel], problem: Problem) -> str:
    name = str(problem.at[0]) if problem.at else ""
    text = problem.text
    if problem.kind == "missing":
        text = (model.model_fields[name].description or "is missing").rstrip(".") + ": is missing"
    return f"{flag(name)}: {text}" if name else text


def value_type(field: FieldInfo) -> Any:
    """Return the type of a field's values, without None."""
    annotation: Any = field.annotation
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(kind for kind in get_args(annotation) if kind is not type(None))
    return annotation


def _is_default(field: FieldInfo, value: object) -> bool:
    return field.default is not None and str(value) == str(field.default)


def _metavar(field: FieldInfo) -> str:
    kind = value_type(field)
    if kind is int:
        return "N"
    if kind is float:
        return "NUMBER"
    return "PATH" if kind is Path else "TEXT"


def _own_words(default: object) -> bool:
    """Return True for defaults that the description has to name: none, and files that come with Plimsoll."""
    return default is None or (isinstance(default, Path) and default.is_absolute())
