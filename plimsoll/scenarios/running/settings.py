"""The settings that scenarios share, and how they become options of click and of Locust.

Options, Locust's form and `run.json` are all made from these models.
"""

import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar, Union, get_args, get_origin
from urllib.parse import urlsplit

import click
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo

from plimsoll.common.errors import SettingsError
from plimsoll.common.validation import Problem, problems_of
from plimsoll.scenarios.running.access import (
    ACCESS_FILES,
    certificate_text,
    check_certificate,
    read_basic_auth,
    read_cookies,
    read_headers,
)

if TYPE_CHECKING:
    from locust.argument_parser import LocustArgumentParser

# A variable of the environment: the path of a file. The first iteration waits until it is there.
BEGIN_VARIABLE = "PLIMSOLL_BEGIN_FILE"
Settings = TypeVar("Settings", bound=BaseModel)

# Settings for which Locust has options of its own.
_LOCUST_OPTIONS = {"target": "host", "users": "num_users"}
_METAVARS = {int: "N", float: "NUMBER", Path: "PATH"}

# Settings that have no effect beside others: which, whether that is so, and why, with what else to do than to
# leave it out. Other options are named as on the command line.
IdleKeys = list[tuple[str, Callable[[Any], bool], str]]


def _base_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be a base URL, such as http://127.0.0.1:8080")
    if parts.username or parts.password:
        raise ValueError(
            "must not contain a user or password: every process list would show them. Write user:password "
            "into a file, chmod 600, and give --basic-auth-file FILE"
        )
    if parts.query or parts.fragment:
        raise ValueError("must not contain ? or #")
    return value.rstrip("/")


def _check_host_port(value: str) -> str:
    host, _, port = value.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError("must be HOST:PORT, such as 10.0.0.5:80")
    return value


def _check_site_path(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme or parts.netloc or value.startswith("//") or not value.strip("/"):
        raise ValueError("must be a path on the site, such as /our-login")
    if parts.fragment or any(character.isspace() or character == "\\" for character in value):
        raise ValueError("must not contain #, \\ or white space")
    return value.lstrip("/")


BaseUrl = Annotated[str, AfterValidator(_base_url)]
HostPort = Annotated[str, AfterValidator(_check_host_port)]
SitePath = Annotated[str, AfterValidator(_check_site_path)]


@dataclass(frozen=True)
class NoLoad:
    """Marks a setting that shapes no load, as part of its type: `instead` is what it says. All others do."""

    instead: str


_WHERE, _WHO, _ENTRY = NoLoad("where the load goes"), NoLoad("who sends it"), NoLoad("what lets it in")
_LEAVE = NoLoad("whether it may be sent")


class SiteSettings(BaseModel):
    """Settings that lead to a site, and in. A field's description is its help text."""

    # Built when settings are first checked: `--help` only lists the fields.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    idle_keys: ClassVar[IdleKeys] = [
        (
            "insecure",
            lambda its: its.target.startswith("http:"),
            "there are no certificates over http://: give a target with https://",
        ),
    ]

    target: Annotated[BaseUrl, _WHERE] = Field(
        description="Base URL of the site, such as http://127.0.0.1:8080."
    )
    connect_to: Annotated[HostPort | None, _WHERE] = Field(
        None,
        description="HOST:PORT to connect to instead; requests keep the target's name.",
    )
    timeout_s: float = Field(
        300.0, gt=0, le=86400, description="Seconds of silence after which a request fails."
    )
    insecure: Annotated[bool, NoLoad("what proves where it goes")] = Field(
        False, description="Accept any certificate."
    )
    header_file: Annotated[Path | None, _ENTRY] = Field(
        None,
        description="File of headers for every request, one Name: value a line; only its owner may read it.",
    )
    basic_auth_file: Annotated[Path | None, _ENTRY] = Field(
        None,
        description="File whose first line is the user:password that the web server asks for; only its "
        "owner may read it.",
    )
    cookie_file: Annotated[Path | None, _ENTRY] = Field(
        None,
        description="File of cookies that each user begins with: name=value a line, or a cookies.txt; "
        "only its owner may read it.",
    )
    client_cert: Annotated[Path | None, _ENTRY] = Field(
        None, description="Certificate that the site asks for, in PEM; with its key, or with --client-key."
    )
    client_key: Annotated[Path | None, _ENTRY] = Field(
        None,
        validate_default=True,
        description="Key of --client-cert, in PEM, without a passphrase; only its owner may read it.",
    )

    @field_validator("header_file", "basic_auth_file", "cookie_file", "client_cert", "client_key")
    @classmethod
    def _usable(cls, path: Path | None, info: ValidationInfo) -> Path | None:
        """Read each file now, so that all problems are reported at once."""
        try:
            _check_file(path, info)
        except SettingsError as error:
            raise ValueError(str(error)) from None
        return path

    def idle(self) -> Iterator[tuple[str, str]]:
        """Yield the settings that were given and have no effect: which, why, and what to do."""
        for kind in type(self).__mro__:
            for key, is_idle, why in vars(kind).get("idle_keys", []):
                if key in self.model_fields_set and getattr(self, key) and is_idle(self):
                    yield key, f"has no effect: {why}, or leave it out"


class ScenarioSettings(SiteSettings):
    """Settings that all scenarios share."""

    seed: int = Field(1, ge=0, description="Seed of articles and images; the same seed gives the same ones.")
    out: Annotated[Path, NoLoad("where it is written")] = Field(
        Path("results"), description="Folder for run directories."
    )
    backend: Annotated[str | None, NoLoad("a name")] = Field(
        None, max_length=80, description="Name of the storage under the site, for reports."
    )
    repeat: Annotated[int | None, NoLoad("a name")] = Field(
        None, ge=1, description="Which repeat of an experiment this run is."
    )

    def recorded_settings(self) -> dict[str, Any]:
        """Return the settings for `run.json`: all but paths of this machine."""
        return self.model_dump(mode="json", exclude={"out", "password_file", "site_config", *ACCESS_FILES})


class ProbedSettings(ScenarioSettings):
    """Settings of a scenario beside which the site is visited."""

    idle_keys: ClassVar[IdleKeys] = [
        ("probe_pages", lambda its: not its.probe_ms, "there are no visits: give --probe-ms above 0"),
    ]

    probe_ms: int = Field(
        100,
        ge=0,
        le=60_000,
        description="Milliseconds between visits by each kind of visitor during the change; 0: none.",
    )
    probe_pages: str | None = Field(
        None,
        description="Paths to visit, separated by commas; default: some pages that the site's front "
        "page links to.",
    )


class IteratedSettings(ScenarioSettings):
    """Settings of a scenario that repeats one thing, with one user or several at a time."""

    usual_iterations: ClassVar[int] = 10

    iterations: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Iterations, by all users together; default: 10, or no limit with --duration-s.",
    )
    duration_s: float | None = Field(
        None, gt=0, le=604_800, description="Seconds after the start until the last iteration may begin."
    )
    users: int = Field(1, ge=1, le=10_000, description="Number of users at a time.")

    @property
    def planned(self) -> int | None:
        """The number of iterations; None if only the time ends them."""
        if self.iterations is None and self.duration_s is None:
            return self.usual_iterations
        return self.iterations

    def recorded_settings(self) -> dict[str, Any]:
        """Return the settings for `run.json`; `iterations` is the planned number."""
        return super().recorded_settings() | {"iterations": self.planned}


class AccountSettings(IteratedSettings):
    """Settings of a scenario that logs in."""

    user: Annotated[str | None, _WHO] = Field(
        None,
        description="Account on the site. Default: PLIMSOLL_USER. Set its password in PLIMSOLL_PASSWORD.",
    )
    password_file: Annotated[Path | None, _WHO] = Field(
        None, description="File whose first line is the password; only its owner may read it."
    )

    @property
    def needs_account(self) -> bool:
        """True if these settings log in."""
        return True


class ChangingSettings(AccountSettings):
    """Settings of a scenario that changes the site and so needs consent."""

    idle_keys: ClassVar[IdleKeys] = [
        (
            "site_config",
            lambda its: (
                its.i_may_change_this_site and (not its.needs_account or (its.user and its.password_file))
            ),
            "the list is not needed: remove --i-may-change-this-site",
        ),
    ]

    site_config: Annotated[Path | None, _LEAVE] = Field(
        None, description="YAML file that lists the clones; default: plimsoll.yml, if it exists."
    )
    i_may_change_this_site: Annotated[bool, _LEAVE] = Field(
        False, description="Allow this run to change the target."
    )


class WordpressSettings(ChangingSettings):
    """Settings of a scenario that logs in to WordPress, and changes it."""

    login_path: Annotated[SitePath | None, NoLoad("where it logs in")] = Field(
        None, description="Path of the login, where a plugin moved it; default: wp-login.php."
    )


def origin(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of `url`."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or ""), parts.port or (443 if parts.scheme == "https" else 80)


def shapes_no_load(model: type[BaseModel]) -> set[str]:
    """Return the names of the settings that `model`, or a model under it, marks as `NoLoad`."""
    return {
        name
        for kind in model.__mro__
        if issubclass(kind, BaseModel)
        for name, field in kind.model_fields.items()
        if any(isinstance(mark, NoLoad) for mark in field.metadata)
    }


def refuse_duration(value: float | None) -> None:
    """Refuse a duration, for upgrades. Raises ValueError."""
    if value is not None:
        raise ValueError("cannot be set: an upgrade runs once, to its end")


def _check_file(path: Path | None, info: ValidationInfo) -> None:
    """Check a file that lets into the site, of the setting that `info` names. Raises SettingsError."""
    cert = info.data.get("client_cert")
    if info.field_name == "client_key" and cert:
        check_certificate(cert, path)
    if path is None:
        return
    match info.field_name:
        case "header_file":
            read_headers(path)
        case "basic_auth_file":
            read_basic_auth(path)
            if (headers := info.data.get("header_file")) and "authorization" in {
                name.lower() for name, _ in read_headers(headers)
            }:
                raise SettingsError(f"cannot be combined with the Authorization in {headers}: leave one out")
        case "cookie_file":
            read_cookies(path)
        case "client_cert":
            certificate_text(path)
            if str(info.data.get("target", "https:")).startswith("http:"):
                raise SettingsError("requires a target with https://: there are no certificates over http://")
        case "client_key" if "client_cert" in info.data and cert is None:
            raise SettingsError("needs --client-cert FILE")


def flag(name: str) -> str:
    """Return the option of a field: `timeout_s` → `--timeout-s`."""
    return "--" + name.replace("_", "-")


def click_options(model: type[BaseModel]) -> list[click.Option]:
    """Return one option a field. Values stay text: the model checks them, all at once."""
    options = []
    for name, field in model.model_fields.items():
        text = field.description or ""
        if value_type(field) is bool:
            options.append(click.Option([flag(name), name], is_flag=True, default=None, help=text))
            continue
        default = f"{field.default:g}" if isinstance(field.default, float) else field.default
        shown = "" if field.is_required() or _is_described(field.default) else f" Default: {default}."
        option = click.Option(
            [flag(name), name],
            metavar=_METAVARS.get(value_type(field), "TEXT"),
            help=text + shown,
            required=field.is_required(),
        )
        options.append(option)
    return options


def add_to_locust(model: type[BaseModel], parser: "LocustArgumentParser") -> None:
    """Give Locust's parser, and so its web form, one option a field that it has not itself."""
    for name, field in model.model_fields.items():
        if name in _LOCUST_OPTIONS:
            continue
        default = None if field.is_required() else field.default
        if value_type(field) is bool:
            parser.add_argument(flag(name), dest=name, action="store_true", help=field.description)
        else:
            parser.add_argument(
                flag(name), dest=name, default="" if default is None else str(default), help=field.description
            )


def read_locust_options(model: type[Settings], options: Mapping[str, Any], host: str | None) -> Settings:
    """Return the settings in Locust's options; `host` is its option for the target.

    Raises SettingsError.
    """
    values = {
        name: value
        for name, field in model.model_fields.items()
        if name != "target" and not _is_default(field, value := options.get(_LOCUST_OPTIONS.get(name, name)))
    }
    return validate_options(model, values | {"target": host})


def validate_options(model: type[Settings], options: Mapping[str, Any]) -> Settings:
    """Return `options` as a checked model; None and empty text mean the default. Raises SettingsError."""
    values = {name: value for name, value in options.items() if value is not None and value != ""}
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise SettingsError("\n".join(_sentence(model, each) for each in problems_of(error))) from None


def cautions(settings: SiteSettings) -> list[str]:
    """Return a sentence on each option that was given and has no effect beside the others."""
    return [f"Caution: {flag(key)}: {why}" for key, why in settings.idle()]


def _sentence(model: type[BaseModel], problem: Problem) -> str:
    name = str(problem.at[0]) if problem.at else ""
    text = problem.text
    if problem.kind == "missing":
        text = (model.model_fields[name].description or "is missing").rstrip(".") + ": is missing"
    return f"{flag(name)}: {text}" if name else text


def value_type(field: FieldInfo) -> Any:
    """Return the type of a field's values, without None."""
    annotation: Any = field.annotation
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(kind for kind in get_args(annotation) if kind is not type(None))
    return annotation


def _is_default(field: FieldInfo, value: object) -> bool:
    return field.default is not None and str(value) == str(field.default)


def _is_described(default: object) -> bool:
    """Return True for defaults that the description has to name: none, and files that come with Plimsoll."""
    return default is None or (isinstance(default, Path) and default.is_absolute())
