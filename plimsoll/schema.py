"""`plimsoll schema`: the JSON Schemas of the files that people write, for editors."""

import json
from importlib import import_module
from typing import Any

import click
from pydantic import BaseModel

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

# The models of all files, by the usual name of each; loaded when asked for.
FILES = {
    "gates.yml": "plimsoll.analysis.compare.gates:Gates",
    "hosts.yml": "plimsoll.lab.hosts:HostsFile",
    "lab.yml": "plimsoll.lab.experiment.labfile:Lab",
    "plimsoll.yml": "plimsoll.scenarios.running.clonelist:SiteConfig",
}


def schema_of(file: str) -> dict[str, Any]:
    """Return the JSON Schema of the file that is called so."""
    module, _, name = FILES[file].partition(":")
    model: type[BaseModel] = getattr(import_module(module), name)
    return model.model_json_schema() | {"$schema": _DIALECT}


@click.command()
@click.argument("file", type=click.Choice(list(FILES)))
def schema(file: str) -> None:
    """Print the JSON Schema of a file that you write, so that your editor completes and checks its keys.

    Begin the file with `# yaml-language-server: $schema=lab.schema.json`.

    \b
    Examples:
        plimsoll schema lab.yml > lab.schema.json
        plimsoll schema gates.yml > gates.schema.json
    """  # noqa: D301 \b is click's: keep these lines as they are
    click.echo(json.dumps(schema_of(file), indent=2))
