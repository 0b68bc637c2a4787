"""plimsoll.yml: the clones that may be changed, the account on each, and whether a run may begin.

A target may be changed if it is listed there, or if the user allows this one run. Passwords come from the
environment, or from a file that only its owner can read.
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import normpath
from typing import Any
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from plimsoll.common.errors import PlimsollError, SettingsError
from plimsoll.common.files import replace_text
from plimsoll.common.validation import parse_model, read_model
from plimsoll.scenarios.running.access import read_access, read_first_line
from plimsoll.scenarios.running.settings import (
    AccountSettings,
    BaseUrl,
    ChangingSettings,
    HostPort,
    ScenarioSettings,
    origin,
)

DEFAULT = Path("plimsoll.yml")
_MANUAL = "docs/scenarios.md"
_HEAD = """\
# The clones that scenarios may change (docs/scenarios.md). An entry with connect_to allows only
# runs with the same --connect-to: without it, the same address is the live site.
"""


class ConsentError(PlimsollError):
    """The scenario would change a site without consent."""


def require_ready(scenario: str, settings: ScenarioSettings) -> None:
    """Check that the scenario may start. Raises PlimsollError with all reasons against it."""
    checks: list[Callable[[], object]] = [lambda: read_access(settings)]
    if isinstance(settings, AccountSettings) and settings.needs_account:
        checks.append(lambda: credentials(settings))
    if isinstance(settings, ChangingSettings):
        checks.append(lambda: require_consent(settings, scenario))
    problems: list[PlimsollError] = []
    for check in checks:
        try:
            check()
        except PlimsollError as error:
            problems.append(error)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        lines = [line for problem in problems for line in str(problem).splitlines()]
        raise SettingsError("\n".join(dict.fromkeys(lines)))


def require_consent(settings: ChangingSettings, scenario: str) -> None:
    """Check that the scenario may change its target. Raises ConsentError, or SettingsError for a bad file."""
    if settings.i_may_change_this_site:
        return
    path = settings.site_config or DEFAULT
    listed = find_config(settings.site_config)
    if listed.of(settings.target, settings.connect_to):
        return
    if ways := [one.connect_to for one in listed.clones if one.connect_to and one.has(settings.target)]:
        way = f"with --connect-to {settings.connect_to}" if settings.connect_to else "without --connect-to"
        raise ConsentError(
            f"{scenario} changes the site, and {path} lists {settings.target} as a clone "
            f"only with --connect-to {' or '.join(ways)}: this run, {way}, may reach the live site. "
            f"Add --connect-to {ways[0]}"
        )
    raise ConsentError(
        f"{scenario} changes the site, and {settings.target} is not listed under clones in {path}: "
        "list it there (plimsoll clone add URL asks it first), or add --i-may-change-this-site"
    )


@dataclass(frozen=True)
class Credentials:
    """An account; its password shows in no representation.

    `login_path` is where the form to log in with it is, None where the site usually has it.
    """

    user: str
    password: str = field(repr=False)
    login_path: str | None = None


def credentials(settings: AccountSettings, environment: Mapping[str, str] = os.environ) -> Credentials:
    """Return the account of `settings`; where they and the environment have none, the listed clone's.

    Raises SettingsError that names all that is missing.
    """
    problems: list[str] = []
    user = settings.user or environment.get("PLIMSOLL_USER", "")
    file = settings.password_file
    config = getattr(settings, "site_config", None)
    if listed := find_config(config).of(settings.target, settings.connect_to):
        user = user or listed.user or ""
        if file is None and user == listed.user and not environment.get("PLIMSOLL_PASSWORD"):
            beside = (config or DEFAULT).parent
            file = beside / listed.password_file if listed.password_file else None
    if not user:
        problems.append("user: is missing; set --user or PLIMSOLL_USER")
    password = environment.get("PLIMSOLL_PASSWORD", "")
    if file:
        try:
            password = secret_in(file)
        except SettingsError as error:
            problems.append(str(error))
    elif not password:
        problems.append("password: is missing; set PLIMSOLL_PASSWORD or --password-file")
    if problems:
        raise SettingsError("\n".join(problems))
    return Credentials(user, password, getattr(settings, "login_path", None))


def secret_in(path: Path, key: str = "password_file") -> str:
    """Return the first line of `path`, which the setting `key` names.

    Raises SettingsError if others may read the file, or it is empty.
    """
    try:
        return read_first_line(path)
    except SettingsError as error:
        raise SettingsError(f"{key}: {error}") from None


def _allow_url_schema(schema: dict[str, Any]) -> None:
    """Let the JSON Schema say that an entry may be its base URL alone."""
    keys = dict(schema)
    schema.clear()
    schema |= {
        "anyOf": [keys, {"type": "string", "description": keys["properties"]["target"]["description"]}]
    }


class Clone(BaseModel):
    """One clone: its base URL alone, or with further keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=_allow_url_schema)

    target: BaseUrl = Field(description="Base URL of the clone.")
    name: str | None = Field(None, max_length=80, description="Name of the clone.")
    title: str | None = Field(None, max_length=200, description="What the site calls itself.")
    connect_to: HostPort | None = Field(
        None, description="HOST:PORT that every run must give as --connect-to."
    )
    user: str | None = Field(None, description="Account on the site, if a run names none.")
    password_file: Path | None = Field(
        None, description="File of its password, relative to the folder of this file."
    )

    @field_validator("password_file")
    @classmethod
    def _of_account(cls, file: Path | None, info: ValidationInfo) -> Path | None:
        if file is not None and not info.data.get("user"):
            raise ValueError("has no effect without user: name the account, or leave it out")
        return file

    @model_validator(mode="before")
    @classmethod
    def _read_bare_url(cls, value: Any) -> Any:
        return {"target": value} if isinstance(value, str) else value

    def allows(self, target: str, connect_to: str | None) -> bool:
        """Return True if this entry allows a run with that target and --connect-to."""
        if not self.has(target):
            return False
        return self.connect_to is None or self.connect_to.lower() == (connect_to or "").lower()

    def has(self, target: str) -> bool:
        """Return True if `target` is the clone, or below its path."""
        own = path_parts(self.target)
        return origin(self.target) == origin(target) and path_parts(target)[: len(own)] == own

    def is_same(self, other: "Clone") -> bool:
        """Return True if `other` is of the same clone, reached the same way."""
        ways = [(one.connect_to or "").lower() for one in (self, other)]
        return self.has(other.target) and other.has(self.target) and ways[0] == ways[1]


class SiteConfig(BaseModel):
    """The file `plimsoll.yml`, which lists the clones."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    clones: list[Clone] = Field([], description="The clones, each its base URL alone, or keys of its own.")

    def of(self, target: str, connect_to: str | None) -> Clone | None:
        """Return the entry that allows the run; of several, the one with the longest path."""
        found = [clone for clone in self.clones if clone.allows(target, connect_to)]
        return max(
            found,
            key=lambda clone: (len(path_parts(clone.target)), len(clone.model_dump(exclude_none=True))),
            default=None,
        )


def path_parts(url: str) -> list[str]:
    """Return the parts of the path of `url`."""
    return [part for part in normpath(urlsplit(url).path or "/").split("/") if part]


def read_config(path: Path) -> SiteConfig:
    """Read and check `path`. Raises SettingsError with all problems."""
    return read_model(path, SiteConfig, _MANUAL)


def find_config(path: Path | None) -> SiteConfig:
    """Return the list in `path`; without one that of the default file, empty if there is none.

    Raises SettingsError.
    """
    if path is None and not DEFAULT.exists():
        return SiteConfig()
    return read_config(path or DEFAULT)


def with_entry(text: str, entry: Clone) -> str:
    """Return the file's text with `entry` at the end of its list; all else stays, comments too. Pure.

    Raises SettingsError for a file that has mistakes, or is written so that nothing can be added.
    """
    former = parse_model(text, str(DEFAULT), SiteConfig, _MANUAL) if _has_content(text) else SiteConfig()
    node = _list_in(text)
    if node is None:
        added = (text.rstrip("\n") + "\n" if text.strip() else _HEAD) + "\nclones:\n" + _lines(entry, "  ")
    elif node.flow_style:
        at = node.end_mark.index - 1
        comma = ", " if node.value else ""
        pairs = ", ".join(f"{key}: {_quote(value)}" for key, value in _given_values(entry).items())
        added = text[:at].rstrip(", \n") + comma + f"{{{pairs}}}" + text[at:]
    else:
        indent = " " * node.start_mark.column
        at = _line_end(text, _last(node).end_mark.index)
        before = text[:at] if text[:at].endswith("\n") else text[:at] + "\n"
        added = before + _lines(entry, indent) + text[at:]
    if parse_model(added, str(DEFAULT), SiteConfig, _MANUAL).clones != [*former.clones, entry]:
        raise SettingsError(f"{entry.target} cannot be added to the list: add it by hand (see {_MANUAL})")
    return added


def without_entry(text: str, unwanted: Callable[[Clone], bool]) -> str:
    """Return the file's text without the entries that are `unwanted`. Pure. Raises SettingsError."""
    if not _has_content(text):
        return text
    former, node = parse_model(text, str(DEFAULT), SiteConfig, _MANUAL).clones, _list_in(text)
    if node is None or node.flow_style:
        return text
    kept = text
    for clone, item in reversed(list(zip(former, node.value, strict=True))):
        if unwanted(clone):
            start = text.rfind("\n", 0, item.start_mark.index) + 1
            kept = kept[:start] + kept[_line_end(text, _last(item).end_mark.index) :]
    remaining = [clone for clone in former if not unwanted(clone)]
    if not remaining:
        kept = kept.replace("clones:\n", "clones: []\n", 1) if kept != text else kept
    if parse_model(kept, str(DEFAULT), SiteConfig, _MANUAL).clones != remaining:
        raise SettingsError(f"entries cannot be removed from the list: remove them by hand (see {_MANUAL})")
    return kept


@contextmanager
def lock_list(path: Path) -> Iterator[Callable[[str], None]]:
    """Keep other writers of `path` out; yield what replaces the file whole. Raises SettingsError."""
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)

            def replace(text: str) -> None:
                mode = path.stat().st_mode & 0o777 if path.exists() else None
                replace_text(path.resolve(), text, mode=mode, sync=True)

            yield replace
        finally:
            fcntl.flock(folder, fcntl.LOCK_UN)  # gevent may close it later
            os.close(folder)
    except OSError as error:
        raise SettingsError(f"{path}: cannot be written: {error.strerror}") from None


def read_list_text(path: Path) -> str:
    """Return the file's text, empty where there is none. Raises SettingsError."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{path}: cannot be read: {getattr(error, 'strerror', 'not UTF-8 text')}"
        ) from None


def _has_content(text: str) -> bool:
    """Return True if there is more than comments."""
    return any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())


def _list_in(text: str) -> yaml.SequenceNode | None:
    root = yaml.compose(text, Loader=yaml.SafeLoader) if _has_content(text) else None
    for key, value in root.value if isinstance(root, yaml.MappingNode) else []:
        if key.value == "clones" and isinstance(value, yaml.SequenceNode):
            return value
    return None


def _last(node: yaml.Node) -> yaml.Node:
    """Return the node that ends last: a block's own end is where the next begins."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        node = node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1]
    return node


def _line_end(text: str, index: int) -> int:
    at = text.find("\n", index)
    return len(text) if at < 0 else at + 1


def _given_values(entry: Clone) -> dict[str, str]:
    given: dict[str, str] = entry.model_dump(mode="json", exclude_none=True)
    return given


def _lines(entry: Clone, indent: str) -> str:
    """Return the entry as YAML, each value in quotes: titles are the site's own words."""
    lines = [f"{key}: {_quote(value)}" for key, value in _given_values(entry).items()]
    return f"{indent}- " + f"\n{indent}  ".join(lines) + "\n"


def _quote(value: str) -> str:
    return yaml.safe_dump(value, default_style='"', width=float("inf")).strip()
