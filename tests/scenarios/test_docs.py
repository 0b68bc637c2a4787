"""Every option of every scenario is documented."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from scenarios.catalog import CATALOG
from scenarios.command import scenario
from scenarios.options import flag

DOCS = Path(__file__).parents[2] / "docs"
COMMON = DOCS / "scenarios.md"
# Where a scenario's own options are, unless with those of all.
PAGES = {
    "upgrade-wordpress": DOCS / "upgrade-wordpress.md",
    "upgrade-xenforo": DOCS / "xenforo.md",
    "visitors": DOCS / "k6.md",
    "browser": DOCS / "k6.md",
}


def documented(name: str) -> set[str]:
    """The options that a scenario's pages name."""
    text = COMMON.read_text(encoding="utf-8")
    if name in PAGES:
        text += PAGES[name].read_text(encoding="utf-8")
    return set(re.findall(r"--[a-z0-9][a-z0-9-]*", text))


@pytest.mark.parametrize("name", CATALOG)
def test_every_option_is_documented(name: str) -> None:
    fields = import_module(CATALOG[name].module).Settings.model_fields
    missing = {flag(field) for field in fields} - documented(name)
    assert not missing, f"describe them in {PAGES.get(name, COMMON).name}"


@pytest.mark.parametrize("name", CATALOG)
def test_every_scenario_has_its_place(name: str) -> None:
    assert f"`{name}`" in COMMON.read_text(encoding="utf-8")
    if name in PAGES:
        assert f"({PAGES[name].name})" in COMMON.read_text(encoding="utf-8"), "linked"


def test_no_option_is_documented_that_is_none() -> None:
    known = {
        flag(field)
        for entry in CATALOG.values()
        for field in import_module(entry.module).Settings.model_fields
    }
    known |= {option for one in scenario.commands.values() for p in one.params for option in p.opts}
    known |= {"--json", "--progress", "--no-progress"}
    known |= {"--describe"}  # of python -m scenarios.check
    # Locust's own
    known |= {
        "--master",
        "--expect-workers",
        "--headless",
        "--spawn-rate",
        "--host",
        "--worker",
        "--master-host",
    }
    assert documented("download") - known == set()


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", COMMON.read_text(encoding="utf-8")))
def test_links_lead_somewhere(link: str) -> None:
    assert link.startswith("https://") or (DOCS / link).exists()
