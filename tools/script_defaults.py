"""The defaults of the k6 scripts, from the models of their settings: `make docs` writes them.

A script that is run without `plimsoll scenario` reads them; see k6/settings.js.
"""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from plimsoll.scenarios import list_scenarios
from plimsoll.scenarios.running.settings import value_type

FOLDER = Path(__file__).parents[1] / "plimsoll" / "scenarios" / "k6" / "defaults"
_KINDS = {
    bool: "flag",
    int: "number",
    float: "number",
    dict[str, str]: "json",
    dict[str, Any]: "json",
    tuple[str, ...]: "json",
}


def script_defaults() -> dict[Path, str]:
    """Return the text of each file: one for each scenario whose module has `ScriptSettings`."""
    models = {one.name: getattr(one.load(), "ScriptSettings", None) for one in list_scenarios()}
    return {FOLDER / f"{name}.json": render(model) for name, model in models.items() if model}


def render(model: type[BaseModel]) -> str:
    """Return kind and default of each setting as JSON; the value of one that is required is null. Pure."""
    lines = []
    for name, field in model.model_fields.items():
        entry: dict[str, Any] = {
            "kind": _KINDS.get(value_type(field), "text"),
            "value": None if field.is_required() else field.default,
        }
        lines.append(f"  {json.dumps(name)}: {json.dumps(entry, default=str)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    """Write all files."""
    FOLDER.mkdir(exist_ok=True)
    for path, text in script_defaults().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
