"""Settings are checked all at once; passwords and consent come from where they may."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from plimsoll import scenarios as registry
from plimsoll.common.errors import SettingsError
from plimsoll.scenarios.check import answers
from plimsoll.scenarios.running.clonelist import ConsentError, Credentials, credentials, require_consent
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
    model = registry.find_scenario(name).load().Settings
    (found,) = cautions(validate_options(model, {"target": URL} | idle))
    assert found.startswith(f"Caution: --{key.replace('_', '-')}: has no effect: ")
    assert found.endswith(", or leave it out")
    assert cautions(validate_options(model, {"target": URL} | effective)) == []


def test_each_key_without_effect_has_a_row() -> None:
    models = {
        kind for name in registry.MODULES for kind in registry.find_scenario(name).load().Settings.__mro__
    }
    known = [key for kind in models for key, *_ in vars(kind).get("idle_keys", [])]
    assert set(known) == {key for _, key, *_ in IDLE}


def test_locusts_defaults_are_not_given() -> None:
    model = registry.find_scenario("upgrade-wordpress").load().Settings
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


def account(**further: Any) -> AccountSettings:
    return AccountSettings(target=URL, **further)


def secret(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("environment", "user", "says"),
    [
        ({"PLIMSOLL_USER": "anna", "PLIMSOLL_PASSWORD": "pw"}, None, "both from the environment"),
        ({"PLIMSOLL_USER": "other", "PLIMSOLL_PASSWORD": "pw"}, "anna", "the option is stronger"),
    ],
)
def test_accounts_come_from_the_environment(environment: dict[str, str], user: str | None, says: str) -> None:
    assert credentials(account(user=user), environment) == Credentials("anna", "pw"), says


def test_a_password_file_is_stronger_than_the_environment(tmp_path: Path) -> None:
    path = secret(tmp_path / "password", "the first line\r\nanother\n")
    found = credentials(account(user="anna", password_file=path), {"PLIMSOLL_PASSWORD": "other"})
    assert found.password == "the first line"  # noqa: S105


def test_a_password_is_in_no_representation() -> None:
    assert "geheim" not in repr(Credentials("anna", "geheim"))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_password_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = secret(tmp_path / "password", "pw", mode)
    with pytest.raises(SettingsError, match="chmod 600"):
        credentials(account(user="anna", password_file=path), {})


@pytest.mark.parametrize(
    ("text", "problem"), [("", "is empty"), ("\nsecond", "is empty"), (None, "cannot be read")]
)
def test_a_password_file_without_one_is_refused(tmp_path: Path, text: str | None, problem: str) -> None:
    path = tmp_path / "password"
    if text is not None:
        secret(path, text)
    with pytest.raises(SettingsError, match=problem):
        credentials(account(user="anna", password_file=path), {})


def test_user_and_password_are_both_named_when_both_are_missing() -> None:
    with pytest.raises(SettingsError) as refused:
        credentials(account(), {})
    assert "PLIMSOLL_USER" in str(refused.value)
    assert "PLIMSOLL_PASSWORD" in str(refused.value)


def config(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("clones", "allowed", "says"),
    [
        ("clones: [http://127.0.0.1:8080]", True, "listed"),
        ("clones:\n  - http://127.0.0.1:8080/\n  - http://other", True, "a slash makes no difference"),
        ("clones: [http://127.0.0.1:8081]", False, "another port is another site"),
        ("clones: [https://127.0.0.1:8080]", False, "another scheme is another site"),
        ("clones: [http://127.0.0.1]", False, "no port is port 80"),
        ("clones: []", False, "none is listed"),
    ],
)
def test_a_target_is_changed_only_if_it_is_listed(
    tmp_path: Path, clones: str, allowed: bool, says: str
) -> None:
    settings = ChangingSettings(target=URL, site_config=config(tmp_path / "sites.yml", clones))
    if allowed:
        require_consent(settings, "save-article")
        return
    with pytest.raises(ConsentError, match="--i-may-change-this-site"):
        require_consent(settings, "save-article")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("clones: [http://a", "is not valid YAML"),
        (
            "clone: [http://a]",
            r"1: clone: is not a known key: did you mean clones\? \(see docs/scenarios.md\)",
        ),
        ("", "must hold keys"),
        ("clones: [nonsense]", "clones.0"),
        ("- http://a", "must hold keys"),
        ("clones: http://a", "clones"),
    ],
)
def test_a_bad_list_of_clones_is_named(tmp_path: Path, text: str, problem: str) -> None:
    settings = ChangingSettings(target=URL, site_config=config(tmp_path / "sites.yml", text))
    with pytest.raises(SettingsError, match=problem):
        require_consent(settings, "save-article")


def test_the_default_list_is_read_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConsentError, match=r"plimsoll\.yml"):
        require_consent(ChangingSettings(target=URL), "save-article")
    config(tmp_path / "plimsoll.yml", f"clones: [{URL}]")
    require_consent(ChangingSettings(target=URL), "save-article")


def test_a_missing_list_that_was_asked_for_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        require_consent(ChangingSettings(target=URL, site_config=tmp_path / "none.yml"), "save-article")


def test_saying_so_is_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    require_consent(ChangingSettings(target=URL, i_may_change_this_site=True), "save-article")
