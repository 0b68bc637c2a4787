"""Every option of every scenario is documented."""

import re

import pytest

from plimsoll import scenarios as registry
from plimsoll.scenarios.clean_up import command as clean_up
from plimsoll.scenarios.init_clone import init_clone
from plimsoll.scenarios.running.settings import flag
from plimsoll.scenarios.scenario import scenario
from tests.support.programs import DOCS

COMMON = DOCS / "scenarios.md"
TEXT = COMMON.read_text(encoding="utf-8")


def row(name: str) -> str:
    """The row that a scenario has in the table of scenarios."""
    return next((line for line in TEXT.splitlines() if line.startswith("|") and f"`{name}`" in line), "")


def documented(name: str) -> set[str]:
    """The options that a scenario's pages name: the common page, and the one its row links to."""
    pages = re.findall(r"\]\((\w[\w-]*\.md)\)", row(name))
    text = TEXT + "".join((DOCS / page).read_text(encoding="utf-8") for page in pages)
    return set(re.findall(r"--[a-z0-9][a-z0-9-]*", text))


@pytest.mark.parametrize("name", registry.MODULES)
def test_every_option_is_documented(name: str) -> None:
    fields = registry.find_scenario(name).load().Settings.model_fields
    missing = {flag(field) for field in fields} - documented(name)
    assert not missing, f"describe them in {COMMON.name}, or on the page that its table links for {name}"


def test_every_option_of_the_clean_up_is_documented() -> None:
    options = {option for one in clean_up().params for option in one.opts if option.startswith("--")}
    assert options - documented("download") == set()


@pytest.mark.parametrize("name", registry.MODULES)
def test_every_scenario_has_its_place(name: str) -> None:
    assert row(name), f"{COMMON.name} lists {name}"


def test_no_option_is_documented_that_is_none() -> None:
    known = {flag(field) for one in registry.list_scenarios() for field in one.load().Settings.model_fields}
    commands = [*scenario.commands.values(), clean_up(), init_clone]
    known |= {option for one in commands for p in one.params for option in p.opts}
    known |= {"--json", "--progress", "--no-progress"}
    known |= {"--prepare"}  # of python -m plimsoll.scenarios.check
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


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", TEXT))
def test_links_lead_somewhere(link: str) -> None:
    assert link.startswith("https://") or (DOCS / link).exists()
