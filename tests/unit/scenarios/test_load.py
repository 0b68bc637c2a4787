"""The load of each scenario in run.json: what of its settings shapes it, under one digest."""

from pathlib import Path
from typing import Any

import pytest

from plimsoll import __version__
from plimsoll import scenarios as registry
from plimsoll.scenarios.running.session import build_facts, load_of_scenario
from plimsoll.scenarios.running.settings import shapes_no_load

# A new setting is to be named here, or marked as NoLoad: whoever adds it decides.
SHAPING = {
    *("timeout_s", "seed", "iterations", "duration_s", "users", "path", "clean_up", "saves", "size_bytes"),
    *(
        "editor",
        "think_s",
        "ready_s",
        "images",
        "from_version",
        "to_version",
        "probe_ms",
        "probe_pages",
        "installer",
        "ssh_command",
        "model",
        "viewport_px",
        "pixel_ratio",
        "editor_profile",
    ),
    *(
        "rate",
        "visitors",
        "stages",
        "pages_per_visit",
        "pages",
        "max_pages",
        "skew",
        "no_files",
        "max_visitors",
    ),
    *("no_screenshots",),
}
NAMES = list(registry.MODULES)
TARGET = "http://127.0.0.1:8080"


def settings_of(scenario: str, **given: Any) -> Any:
    return registry.find_scenario(scenario).load().Settings(target=TARGET, **given)


@pytest.mark.parametrize("scenario", NAMES)
def test_each_setting_shapes_load_or_does_not(scenario: str) -> None:
    model = registry.find_scenario(scenario).load().Settings
    names, shapeless = set(model.model_fields), shapes_no_load(model)
    assert not SHAPING & shapeless
    assert names <= SHAPING | shapeless, "say of the new setting whether it shapes load"
    load = build_facts(scenario, settings_of(scenario), k6="1.4.0").load
    assert load is not None
    assert names & SHAPING <= load.settings.keys()
    assert not names & shapeless & load.settings.keys()
    assert load.settings["timeout_s"] > 0
    said = ("program", "program_version", "scenario", "k6_version")
    assert [load.settings[name] for name in said] == ["scenario", __version__, scenario, "1.4.0"]


SAME: list[tuple[str, str, dict[str, Any], bool]] = [
    ("another time-out", "download", {"timeout_s": 1.0}, False),
    ("more users", "download", {"users": 2}, False),
    ("another seed", "download", {"seed": 2}, False),
    ("as many iterations as by default", "download", {"iterations": 10}, True),
    ("more of them", "download", {"iterations": 11}, False),
    ("another backend", "download", {"backend": "two", "repeat": 2, "out": Path("elsewhere")}, True),
    ("an address to connect to", "download", {"connect_to": "127.0.0.1:81", "insecure": True}, True),
    ("another account", "save-article", {"user": "anne"}, True),
    ("more saves", "save-article", {"saves": 6}, False),
    ("another rate", "visitors", {"rate": 6.0}, False),
    ("a gate on the result", "visitors", {"max_p999_ms": 5.0, "dashboard": "127.0.0.1:5665"}, True),
]


@pytest.mark.parametrize(("why", "scenario", "changed", "same"), SAME)
def test_what_shapes_load_changes_the_digest(
    why: str, scenario: str, changed: dict[str, Any], same: bool
) -> None:
    base = load_of_scenario(scenario, settings_of(scenario), {})
    other = load_of_scenario(scenario, settings_of(scenario, **changed), {})
    assert (base.digest == other.digest) == same, why


def test_another_version_is_another_load() -> None:
    settings = settings_of("visitors")
    old, new = (load_of_scenario("visitors", settings, {"k6": version}) for version in ("1.4.0", "1.5.0"))
    assert old.digest != new.digest


def test_files_count_by_what_is_in_them(tmp_path: Path) -> None:
    pages = [tmp_path / name for name in ("one", "same", "other")]
    for path, text in zip(pages, ("/a\n", "/a\n", "/b\n"), strict=True):
        path.write_text(text)
    one, same, other = (
        load_of_scenario("visitors", settings_of("visitors", pages=path), {}).digest for path in pages
    )
    assert one == same
    assert one != other


def test_a_command_that_may_hold_a_password_stands_as_its_digest() -> None:
    settings = settings_of("upgrade-xenforo", ssh="root@forum", ssh_command="upgrade --password secret")
    load = load_of_scenario("upgrade-xenforo", settings, {})
    assert "secret" not in str(load.settings)
    assert load.settings["ssh_command"] is not None
