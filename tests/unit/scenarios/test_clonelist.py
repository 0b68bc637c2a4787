"""The list of clones: leave to change them, accounts on them, and how entries come and go in its file."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.common.errors import SettingsError
from plimsoll.scenarios.running.clonelist import (
    Clone,
    ConsentError,
    Credentials,
    SiteConfig,
    credentials,
    read_config,
    require_consent,
    with_entry,
    without_entry,
)
from plimsoll.scenarios.running.settings import AccountSettings, ChangingSettings
from tests.support.scenario import write_secret

URL = "http://127.0.0.1:8080"
LIVE, WAY = "https://www.example.org", "10.0.0.5:443"
NOT_LISTED, OTHER_WAY = ("--i-may-change-this-site",), (LIVE, f"only with --connect-to {WAY}")
GUARDED = f"clones:\n  - target: {LIVE}\n    connect_to: {WAY}\n"


def settings(folder: Path, text: str | None, **given: Any) -> ChangingSettings:
    path = folder / "sites.yml"
    if text is not None:
        path.write_text(text)
    return ChangingSettings(site_config=path, **{"target": LIVE} | given)


TWO_WAYS = GUARDED + f"  - {{target: {LIVE}, connect_to: '10.0.0.6:443'}}\n"
# The list, what is asked for, and what the refusal says, or None.
LEAVE: list[tuple[str, str, str, str | None, tuple[str, ...] | None]] = [
    ("listed", f"clones: [{URL}]", URL, None, None),
    ("a slash makes no difference", f"clones:\n  - {URL}/\n  - http://other", URL, None, None),
    ("another port is another site", "clones: [http://127.0.0.1:8081]", URL, None, NOT_LISTED),
    ("another scheme is another site", "clones: [https://127.0.0.1:8080]", URL, None, NOT_LISTED),
    ("no port is port 80", "clones: [http://127.0.0.1]", URL, None, NOT_LISTED),
    ("none is listed", "clones: []", URL, None, NOT_LISTED),
    ("the way that the entry asks for", GUARDED, LIVE, WAY, None),
    (
        "the flag was forgotten: this is the live site",
        GUARDED,
        LIVE,
        None,
        (*OTHER_WAY, "without --connect-to"),
    ),
    ("another way", GUARDED, LIVE, "10.0.0.6:443", (*OTHER_WAY, "with --connect-to 10.0.0.6:443")),
    ("another port", GUARDED, LIVE, "10.0.0.5:80", (*OTHER_WAY, "with --connect-to 10.0.0.5:80")),
    ("one of two ways", TWO_WAYS, LIVE, "10.0.0.6:443", None),
    ("an entry that asks for none takes any, as ever", f"clones: [{LIVE}]", LIVE, WAY, None),
]


@pytest.mark.parametrize(
    ("why", "text", "target", "connect_to", "refusal"), LEAVE, ids=[row[0] for row in LEAVE]
)
def test_a_target_is_changed_only_if_it_is_listed_with_its_way(
    tmp_path: Path, why: str, text: str, target: str, connect_to: str | None, refusal: tuple[str, ...] | None
) -> None:
    asked = settings(tmp_path, text, target=target, connect_to=connect_to)
    if refusal is None:
        require_consent(asked, "save-article")
        return
    with pytest.raises(ConsentError) as refused:
        require_consent(asked, "save-article")
    for part in refusal:
        assert part in str(refused.value), why


PATHS: list[tuple[str, str, str, str | None]] = [
    ("the host", f"[{LIVE}]", LIVE, LIVE),
    ("a path of the host", f"[{LIVE}]", f"{LIVE}/blog", LIVE),
    ("the path", f"[{LIVE}/blog]", f"{LIVE}/blog", f"{LIVE}/blog"),
    ("below the path", f"[{LIVE}/blog/]", f"{LIVE}/blog/de", f"{LIVE}/blog"),
    ("the host of a listed path", f"[{LIVE}/blog]", LIVE, None),
    ("another path", f"[{LIVE}/blog]", f"{LIVE}/shop", None),
    ("a path that begins with its letters", f"[{LIVE}/blog]", f"{LIVE}/blog2", None),
    ("a path that leads out of it", f"[{LIVE}/blog]", f"{LIVE}/blog/../shop", None),
    ("the longer of two", f"[{LIVE}, {LIVE}/blog]", f"{LIVE}/blog", f"{LIVE}/blog"),
    (
        "the longer, though the shorter says more",
        f"[{{target: {LIVE}, user: a, password_file: b}}, {LIVE}/blog]",
        f"{LIVE}/blog",
        f"{LIVE}/blog",
    ),
]


@pytest.mark.parametrize(("why", "clones", "target", "entry"), PATHS, ids=[row[0] for row in PATHS])
def test_an_entry_is_of_its_path(why: str, clones: str, target: str, entry: str | None) -> None:
    found = _parsed(f"clones: {clones}").of(target, None)
    assert (found and found.target) == entry, why


def test_a_password_of_nobody_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"clones\.0\.password_file: has no effect without user"):
        _parsed(f"clones: [{{target: {LIVE}, password_file: b}}]")


def with_account(folder: Path, text: str = "pw of the list\n") -> str:
    (folder / "secret").mkdir(exist_ok=True)
    write_secret(folder / "secret" / "password", text)
    return GUARDED + "    user: anna\n    password_file: secret/password\n"


ACCOUNTS = [
    ("where the run names none", {"connect_to": WAY}, {}, Credentials("anna", "pw of the list")),
    (
        "its password, for its user",
        {"connect_to": WAY, "user": "anna"},
        {},
        Credentials("anna", "pw of the list"),
    ),
    (
        "the environment is stronger",
        {"connect_to": WAY},
        {"PLIMSOLL_USER": "bert", "PLIMSOLL_PASSWORD": "pw"},
        Credentials("bert", "pw"),
    ),
    ("another user's password it is not", {"connect_to": WAY, "user": "bert"}, {}, None),
    ("another way, another site", {}, {}, None),
]


@pytest.mark.parametrize(
    ("why", "given_", "environment", "account"), ACCOUNTS, ids=[row[0] for row in ACCOUNTS]
)
def test_the_account_of_an_entry(
    tmp_path: Path, why: str, given_: dict[str, Any], environment: dict[str, str], account: Credentials | None
) -> None:
    asked = settings(tmp_path, with_account(tmp_path), **given_)
    if account:
        assert credentials(asked, environment) == account, why
        return
    with pytest.raises(SettingsError, match="is missing"):
        credentials(asked, environment)


def test_a_listed_password_that_others_may_read_is_refused(tmp_path: Path) -> None:
    asked = settings(tmp_path, with_account(tmp_path), connect_to=WAY)
    (tmp_path / "secret" / "password").chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600"):
        credentials(asked, {})


NEW = Clone(target="http://127.0.0.1:8080", name="here", connect_to="127.0.0.1:81")
TEXTS = [
    ("no file yet", ""),
    ("only comments", "# mine\n"),
    ("a list", "# mine\nclones: # these\n  - http://a # the first\n  # the last\n  - http://b\n"),
    ("a list that is not indented", "clones:\n- http://a\n"),
    ("entries with keys", GUARDED + "    title: |\n      of two\n      lines\n"),
    ("no line end", "clones:\n  - http://a"),
    ("in one line", "clones: [http://a, http://b] # mine\n"),
    ("an empty one", "clones: []\n"),
    ("comments after it", "clones:\n  - http://a\n\n# the end\n"),
]


@pytest.mark.parametrize(("why", "text"), TEXTS, ids=[row[0] for row in TEXTS])
def test_an_entry_is_added_and_taken_out_again(tmp_path: Path, why: str, text: str) -> None:
    path = tmp_path / "sites.yml"
    path.write_text(text)
    before = read_config(path).clones if "clones" in text else []
    path.write_text(with_entry(text, NEW))
    assert read_config(path).clones == [*before, NEW], why
    for line in text.splitlines():
        if "[" not in line:
            assert line in path.read_text(), "what was there stays, comments too"
    less = without_entry(path.read_text(), lambda one: one == NEW)
    path.write_text(less)
    assert read_config(path).clones == (before if "[" not in text else [*before, NEW])


@pytest.mark.parametrize(
    "text", ["clones: http://a\n", "clone: []\n", "clones:\n", "- http://a\n", "clones: [\n"]
)
def test_a_list_with_mistakes_is_left_alone(text: str) -> None:
    with pytest.raises(SettingsError):
        with_entry(text, NEW)


@given(st.lists(st.text(min_size=1, max_size=200), max_size=4), st.booleans())
def test_no_title_breaks_the_list(titles: list[str], flow: bool) -> None:
    text = "clones: []\n" if flow else ""
    for i, title in enumerate(titles):
        text = with_entry(text, Clone(target=f"http://host{i}", title=title))
    found = SiteConfig() if not titles else _parsed(text)
    assert [one.title for one in found.clones] == titles


def _parsed(text: str) -> SiteConfig:
    from plimsoll.common.validation import parse_model

    return parse_model(text, "sites.yml", SiteConfig, "")


def account(**further: Any) -> AccountSettings:
    return AccountSettings(target=URL, **further)


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
    path = write_secret(tmp_path / "password", "the first line\r\nanother\n")
    found = credentials(account(user="anna", password_file=path), {"PLIMSOLL_PASSWORD": "other"})
    assert found.password == "the first line"  # noqa: S105


def test_a_password_is_in_no_representation() -> None:
    assert "geheim" not in repr(Credentials("anna", "geheim"))


@pytest.mark.parametrize(
    ("text", "mode", "problem"),
    [
        ("", 0o600, "is empty"),
        ("\nsecond", 0o600, "is empty"),
        (None, 0, "cannot be read"),
        *(("pw", mode, "chmod 600") for mode in (0o640, 0o604, 0o660, 0o601)),
    ],
)
def test_a_password_file_that_is_empty_missing_or_open_to_others_is_refused(
    tmp_path: Path, text: str | None, mode: int, problem: str
) -> None:
    path = tmp_path / "password"
    if text is not None:
        write_secret(path, text, mode)
    with pytest.raises(SettingsError, match=problem):
        credentials(account(user="anna", password_file=path), {})


def test_user_and_password_are_both_named_when_both_are_missing() -> None:
    with pytest.raises(SettingsError) as refused:
        credentials(account(), {})
    assert "PLIMSOLL_USER" in str(refused.value)
    assert "PLIMSOLL_PASSWORD" in str(refused.value)


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
        (None, "cannot be read"),
    ],
)
def test_a_bad_or_missing_list_of_clones_is_named(tmp_path: Path, text: str | None, problem: str) -> None:
    asked = settings(tmp_path, text)
    with pytest.raises(SettingsError, match=problem):
        require_consent(asked, "save-article")


def test_the_default_list_is_read_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConsentError, match=r"plimsoll\.yml"):
        require_consent(ChangingSettings(target=URL), "save-article")
    (tmp_path / "plimsoll.yml").write_text(f"clones: [{URL}]")
    require_consent(ChangingSettings(target=URL), "save-article")


def test_saying_so_is_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    require_consent(ChangingSettings(target=URL, i_may_change_this_site=True), "save-article")
