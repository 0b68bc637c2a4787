"""Settings are checked all at once, and one without effect is named."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from plimsoll import scenarios as registry
from plimsoll.common.errors import SettingsError
from plimsoll.scenarios.check import answers
from plimsoll.scenarios.running.settings import (
    AccountSettings,
    ChangingSettings,
    ScenarioSettings,
    cautions,
    read_locust_options,
    validate_options,
)

URL = "http://127.0.0.1:8080"


@pytest.mark.parametrize(
    ("given", "kept", "says"),
    [
        ({"target": f"{URL}/"}, URL, "a slash at the end is dropped"),
        ({"target": "https://www.example.org/blog/"}, "https://www.example.org/blog", "a site in a folder"),
        ({"target": "http://[::1]:81"}, "http://[::1]:81", "an IPv6 address"),
    ],
)
def test_targets_that_are_taken(given: dict[str, Any], kept: str, says: str) -> None:
    assert validate_options(ScenarioSettings, given).target == kept, says


@pytest.mark.parametrize(
    ("model", "given", "problem"),
    [
        (ScenarioSettings, {}, "--target: Base URL of the site"),
        (ScenarioSettings, {"target": "127.0.0.1"}, "--target: must be a base URL"),
        (ScenarioSettings, {"target": "ftp://host"}, "--target: must be a base URL"),
        (ScenarioSettings, {"target": "http://admin:pw@host"}, "--target: must not contain a user"),
        (ScenarioSettings, {"target": "http://host/?p=1"}, "--target: must not contain ? or #"),
        (ScenarioSettings, {"target": URL, "connect_to": "host"}, "--connect-to: must be HOST:PORT"),
        (ScenarioSettings, {"target": URL, "connect_to": "host:99999"}, "--connect-to: must be HOST:PORT"),
        (ScenarioSettings, {"target": URL, "timeout_s": "0"}, "--timeout-s: "),
        (ScenarioSettings, {"target": URL, "seed": "-1"}, "--seed: "),
        (AccountSettings, {"target": URL, "iterations": "none"}, "--iterations: "),
        (AccountSettings, {"target": URL, "users": "0"}, "--users: "),
    ],
)
def test_settings_that_are_refused_name_their_option(
    model: type[BaseModel], given: dict[str, Any], problem: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        validate_options(model, given)
    assert str(refused.value).startswith(problem)


def test_all_problems_are_named_at_once() -> None:
    with pytest.raises(SettingsError) as refused:
        validate_options(AccountSettings, {"target": "x", "users": "0", "seed": "one"})
    assert {line.partition(":")[0] for line in str(refused.value).splitlines()} == {
        "--target",
        "--users",
        "--seed",
    }


_STAGES: dict[str, Any] = {"stages": "10s:5"}
_RATE, _USERS = {"model": "ramping-arrival-rate"}, {"model": "ramping-vus"}
_SSH = {"ssh": "root@forum", "ssh_command": "upgrade"}
_LEAVE = {"i_may_change_this_site": True, "user": "anna"}
# The scenario, the key, what makes it idle, and what gives it an effect.
IDLE: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("download", "insecure", {"insecure": True}, {"insecure": True, "target": "https://a"}),
    (
        "save-article",
        "site_config",
        {"site_config": "a.yml", "password_file": "pw"} | _LEAVE,
        {"site_config": "a.yml"} | _LEAVE,
    ),
    ("upgrade-xenforo", "site_config", {"site_config": "a.yml", "i_may_change_this_site": True} | _SSH, _SSH),
    (
        "save-article",
        "editor_profile",
        {"editor_profile": "own.yml", "editor": "classic"},
        {"editor_profile": "own.yml"},
    ),
    ("upload-images", "cache", {"cache": "/a", "images": "/b"}, {"cache": "/a"}),
    ("upgrade-wordpress", "probe_pages", {"probe_pages": "/", "probe_ms": "0"}, {"probe_pages": "/"}),
    ("upgrade-xenforo", "user", {"user": "anna"} | _SSH, {"user": "anna"}),
    ("upgrade-xenforo", "password_file", {"password_file": "pw"} | _SSH, {"password_file": "pw"}),
    ("visitors", "stages", _STAGES, _STAGES | _RATE),
    ("visitors", "rate", {"rate": 9} | _USERS, {"rate": 9} | _RATE),
    ("visitors", "rate", {"rate": 9} | _STAGES | _RATE, {"rate": 9}),
    ("visitors", "visitors", {"visitors": 9}, {"visitors": 9} | _USERS),
    ("visitors", "visitors", {"visitors": 9} | _STAGES | _USERS, _STAGES | _USERS),
    ("visitors", "duration_s", {"duration_s": 9} | _STAGES | _USERS, {"duration_s": 9} | _USERS),
    ("visitors", "max_visitors", {"max_visitors": 9} | _USERS, {"max_visitors": 9} | _RATE),
    ("visitors", "max_pages", {"max_pages": 9, "pages": "own.yml"}, {"max_pages": 9}),
    ("visitors", "think_s", {"think_s": 1, "pages_per_visit": 1}, {"think_s": 1}),
    ("visitors", "viewport_px", {"viewport_px": 400, "no_files": True}, {"viewport_px": 400}),
    ("visitors", "pixel_ratio", {"pixel_ratio": 2, "no_files": True}, {"pixel_ratio": 2}),
]


@pytest.mark.parametrize(("name", "key", "idle", "effective"), IDLE, ids=[f"{r[0]} {r[1]}" for r in IDLE])
def test_a_setting_without_effect_is_named(
    name: str,
    key: str,
    idle: dict[str, Any],
    effective: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.yml").write_text("files: never\n")
    model = registry.find_scenario(name).settings()
    (found,) = cautions(validate_options(model, {"target": URL} | idle))
    assert found.startswith(f"Caution: --{key.replace('_', '-')}: has no effect: ")
    assert found.endswith(", or leave it out")
    assert cautions(validate_options(model, {"target": URL} | effective)) == []


def test_each_key_without_effect_has_a_row() -> None:
    models = {kind for name in registry.MODULES for kind in registry.find_scenario(name).settings().__mro__}
    known = [key for kind in models for key, *_ in vars(kind).get("idle_keys", [])]
    assert set(known) == {key for _, key, *_ in IDLE}


def test_locusts_defaults_are_not_given() -> None:
    model = registry.find_scenario("upgrade-wordpress").settings()
    form = {"num_users": 1, "probe_ms": "0", "probe_pages": "", "insecure": False, "timeout_s": "3600.0"}
    settings = read_locust_options(model, form, URL)
    assert settings.model_fields_set == {"target", "probe_ms"}
    assert cautions(settings) == []
    assert len(cautions(read_locust_options(model, form | {"probe_pages": "/"}, URL))) == 1


def test_a_duration_that_the_lab_gives_is_not_the_users() -> None:
    given = {"target": URL} | _STAGES | _RATE
    (idle,) = answers([{"scenario": "visitors", "settings": given, "duration_s": 40}])["idle"]
    assert idle == []


def test_what_is_kept_has_no_paths_of_this_machine(tmp_path: Path) -> None:
    settings = ChangingSettings(
        target=URL, out=tmp_path, password_file=tmp_path / "p", site_config=tmp_path / "y"
    )
    assert str(tmp_path) not in str(settings.recorded_settings())
