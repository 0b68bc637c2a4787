"""All scenarios, one line each: things that people do to a site, one file each.

Each is also a locustfile, or has a k6 script beside it. Scenarios know nothing of the lab: they take a target
and write a run directory. A scenario's `ABOUT` is read from its source, since importing one on Locust would
patch the whole process; for the same reason this module imports nothing of ours.
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, cast

MODULES = {
    "download": "plimsoll.scenarios.download",
    "save-article": "plimsoll.scenarios.save_article",
    "upload-images": "plimsoll.scenarios.upload_images",
    "upgrade-wordpress": "plimsoll.scenarios.upgrade_wordpress",
    "upgrade-xenforo": "plimsoll.scenarios.upgrade_xenforo",
    "visitors": "plimsoll.scenarios.visitors",
    "browser": "plimsoll.scenarios.browser",
}

CLEAN_UP_DOES = "finds and removes what runs left on the site, including killed ones"


class ScenarioModule(Protocol):
    """The module of a scenario; it also has `ABOUT`, a literal with keys `does`, `needs` and `changes`."""

    Settings: type[Any]  # a model of ScenarioSettings, unless `plimsoll.scenarios.settings` has it
    run: Callable[[Any, Callable[[int, int], None], Callable[[str], None]], tuple[Path, bool]]


@dataclass(frozen=True)
class Scenario:
    """One scenario: what it does, needs, and changes on the site (None: nothing)."""

    name: str
    module: str
    does: str
    needs: str
    changes: str | None

    @property
    def runs_on_k6(self) -> bool:
        """True if it is a k6 script, which lies beside its module."""
        return Path(__file__).with_name(f"{self.name}.js").is_file()

    def load(self) -> ScenarioModule:
        """Import the scenario's module; one on Locust after Locust, which patches what others import."""
        if not self.runs_on_k6:
            import_module("locust")
        return cast(ScenarioModule, import_module(self.module))

    def settings(self) -> type[Any]:
        """Return the model of its settings: `NameSettings` of our light file, or `Settings` of its module."""
        ours = vars(import_module("plimsoll.scenarios.settings"))
        return ours.get(f"{self.name.title().replace('-', '')}Settings") or self.load().Settings


def list_scenarios() -> list[Scenario]:
    """Return all scenarios, none of them imported."""
    return [find_scenario(name) for name in MODULES]


def find_scenario(name: str) -> Scenario:
    """Return the scenario called `name`. Raises KeyError for an unknown name."""
    module = MODULES[name]
    return Scenario(name, module, **_about(module))


def _about(module: str) -> dict[str, Any]:
    """Return the literal `ABOUT` of a module that is not imported."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"the registry names {module}, which does not exist", name=module)
    for statement in ast.parse(Path(spec.origin).read_bytes()).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="ABOUT")], value=value):
                about: dict[str, Any] = ast.literal_eval(value)
                return about
    raise LookupError(f"{module} has no ABOUT: a literal with the keys does, needs and changes")
