"""The settings of each scenario: its options and their checks, without what the work itself needs.

`plimsoll scenario NAME --help` loads this file and no scenario, so what only a check needs is imported in it.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, model_validator

from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import redact
from plimsoll.scenarios.running.settings import (
    ChangingSettings,
    HostPort,
    IdleKeys,
    IteratedSettings,
    NoLoad,
    ProbedSettings,
    ScenarioSettings,
    WordpressSettings,
    refuse_duration,
)

if TYPE_CHECKING:
    from plimsoll.scenarios.xenforo.installer import Pages

MOST_PAGES = 10_000  # that visitors choose from: each of them holds the list

# The file of pages that comes with Plimsoll.
STAND_IN = Path(__file__).parent / "xenforo" / "stand-in.yml"


class AuthorSettings(WordpressSettings):
    """Settings of an author."""

    clean_up: Literal["always", "failed", "never"] = Field(
        "failed",
        description="What to delete at the end: always everything, only the work of failed iterations (of a "
        "failed run: everything), or never anything.",
    )


class DownloadSettings(IteratedSettings):
    """Settings of the download."""

    path: str = Field("/static/download.tar.gz", min_length=1, description="The file on the site.")


def _check_profile(path: Path | None) -> Path | None:
    from plimsoll.scenarios.wordpress.editor_traffic import read_profile

    if path is not None:
        try:
            read_profile(path)
        except SettingsError as error:
            raise ValueError(str(error)) from None
    return path


class SaveArticleSettings(AuthorSettings):
    """Settings of the author."""

    idle_keys: ClassVar[IdleKeys] = [
        (
            "editor_profile",
            lambda its: its.editor == "classic",
            "the classic editor sends no other requests: choose --editor auto or blocks",
        )
    ]

    iterations: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Articles, by all users together; default: 10, or no limit with --duration-s.",
    )
    saves: int = Field(5, ge=0, le=10_000, description="Saves of each article after it is published.")
    size_bytes: int = Field(
        100_000,
        ge=200,
        le=100_000,
        description="Size of the largest articles; smaller sizes are drawn at random by the seed.",
    )
    editor: Literal["auto", "classic", "blocks"] = Field(
        "auto", description="Editor to use: classic, blocks, or auto (the one that the site shows)."
    )
    think_s: float = Field(
        0.0, ge=0, le=3600, description="Seconds of writing before publishing and before each save."
    )
    editor_profile: Annotated[Path | None, AfterValidator(_check_profile)] = Field(
        None,
        description="YAML file of the block editor's further requests (docs/block-editor.md); default: as "
        "recorded of the site's version of WordPress.",
    )

    def recorded_settings(self) -> dict[str, Any]:
        """Return the settings for `run.json`: all but paths of this machine."""
        kept = super().recorded_settings()
        return {name: value for name, value in kept.items() if name != "editor_profile"} | {
            "own_editor_profile": self.editor_profile is not None
        }


class UploadImagesSettings(AuthorSettings):
    """Settings of the photographer."""

    usual_iterations: ClassVar[int] = 100
    idle_keys: ClassVar[IdleKeys] = [
        ("cache", lambda its: its.images, "with --images no photographs are generated: remove one of them"),
    ]

    iterations: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Photographs, by all users together; default: 100, or no limit with --duration-s "
        "(100 different ones).",
    )
    ready_s: float = Field(
        60.0,
        ge=0,
        le=86400,
        description="Seconds after the upload within which an image must have all its sizes.",
    )
    images: Path | None = Field(None, description="Folder of your own photographs, uploaded in turn.")
    cache: Annotated[Path | None, NoLoad("where what is sent is kept")] = Field(
        None, description="Folder for generated photographs; default: plimsoll/images in the user's cache."
    )

    @property
    def distinct(self) -> int:
        """The number of different photographs; after the last the first is used again."""
        return self.planned or self.usual_iterations

    def recorded_settings(self) -> dict[str, Any]:
        """Return the settings for `run.json`: all but paths of this machine."""
        kept = super().recorded_settings()
        return {name: value for name, value in kept.items() if name not in ("images", "cache")} | {
            "own_images": self.images is not None
        }


Model = Literal["constant-arrival-rate", "ramping-arrival-rate", "ramping-vus"]
_STAGE = re.compile(r"([0-9]+(?:\.[0-9]+)?)(s|m|h)?:([0-9]+(?:\.[0-9]+)?)")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_IN_STAGES = "the stages define it: remove --stages"


class Stage(NamedTuple):
    """A straight line from the last stage's target (first from 0) to `target`."""

    duration_s: float
    target: float


def parse_stages(text: str) -> list[Stage]:
    """Return the stages of `text`. Raises ValueError that names the wrong part."""
    stages = []
    for part in text.split(","):
        found = _STAGE.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"{part!r} is not a stage such as 30s:10")
        stages.append(Stage(float(found[1]) * _SECONDS[found[2] or "s"], float(found[3])))
    if not any(stage.target for stage in stages) or not all(stage.duration_s for stage in stages):
        raise ValueError("needs a target above 0, and a duration above 0 in each stage")
    return stages


def _check_stages(value: str) -> str:
    parse_stages(value)
    return value


Stages = Annotated[str, AfterValidator(_check_stages)]


class VisitorsSettings(ScenarioSettings):
    """Settings of the visitors."""

    idle_keys: ClassVar[IdleKeys] = [
        (
            "stages",
            lambda its: its.model == "constant-arrival-rate",
            "a constant rate has no stages: choose a --model that ramps",
        ),
        ("rate", lambda its: its.model == "ramping-vus", "this model has no rate: choose another --model"),
        ("rate", lambda its: its.model == "ramping-arrival-rate" and its.stages, _IN_STAGES),
        (
            "visitors",
            lambda its: its.model != "ramping-vus",
            "the rate decides how many visitors come: choose --model ramping-vus",
        ),
        ("visitors", lambda its: its.model == "ramping-vus" and its.stages, _IN_STAGES),
        ("duration_s", lambda its: its.model != "constant-arrival-rate" and its.stages, _IN_STAGES),
        (
            "max_visitors",
            lambda its: its.model == "ramping-vus",
            "--visitors already gives their number: choose another --model",
        ),
        (
            "think_s",
            lambda its: its.pages_per_visit == 1 and its.model != "ramping-vus",
            "a visit of one page has no pause: raise --pages-per-visit",
        ),
        ("max_pages", lambda its: its.pages, "the file of pages lists them all: remove --pages"),
        *(
            (key, lambda its: its.no_files, "no images are requested: remove --no-files")
            for key in ("viewport_px", "pixel_ratio")
        ),
    ]

    model: Model = Field(
        "constant-arrival-rate",
        description="constant-arrival-rate or ramping-arrival-rate (visits begin when due, whatever the site "
        "does), or ramping-vus (a number of visitors, each waiting for the site).",
    )
    rate: float = Field(5.0, gt=0, le=100_000, description="Visits a second; for a ramp, at its peak.")
    visitors: int = Field(100, ge=1, le=100_000, description="Visitors at the peak of ramping-vus.")
    duration_s: float = Field(60.0, gt=0, le=604_800, description="Seconds until the last visit begins.")
    stages: Stages | None = Field(
        None, description="Your own ramps: 30s:10,2m:50 rises to 10 within 30 s, then to 50 within 2 minutes."
    )
    pages_per_visit: int = Field(3, ge=1, le=1000, description="Pages in one visit.")
    think_s: float = Field(2.0, ge=0, le=3600, description="Mean seconds between two pages.")
    pages: Path | None = Field(
        None, description="File with one path or address per line, all read; default: what the site links to."
    )
    max_pages: int = Field(
        200, ge=1, le=MOST_PAGES, description="Largest number of pages to look for on the site."
    )
    skew: float = Field(
        1.0, ge=0, le=5, description="Page i is read in proportion to 1/i^skew; 0: all equally."
    )
    no_files: bool = Field(False, description="Request pages without their styles, scripts and images.")
    viewport_px: int = Field(
        1366, ge=100, le=10_000, description="Width of the visitors' screens in CSS pixels, for srcset."
    )
    pixel_ratio: float = Field(
        1.0, ge=0.5, le=5, description="Screen pixels per CSS pixel: 2 on most phones."
    )
    max_visitors: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="Largest number of visitors at a time. Default: derived from the rate.",
    )
    max_p999_ms: Annotated[float | None, NoLoad("what the run is held against")] = Field(
        None, gt=0, description="Exit with 1 unless p99.9 of the pages' response time is below this."
    )
    dashboard: Annotated[HostPort | None, NoLoad("what is shown")] = Field(
        None, description="HOST:PORT for k6's web dashboard during the run."
    )
    timeout_s: float = Field(
        60.0, gt=0, le=86400, description="Seconds of silence after which a request fails."
    )


def _no_certificate(value: Path | None) -> None:
    if value is not None:
        raise ValueError(
            "cannot be given to a browser: Chromium takes no certificate from a file. Let the clone's web "
            "server ask for a password or a header instead (--basic-auth-file, --header-file)"
        )


class BrowserSettings(WordpressSettings):
    """Settings of the browser."""

    usual_iterations: ClassVar[int] = 1

    iterations: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Days, by all users together; default: 1, or no limit with --duration-s.",
    )
    timeout_s: float = Field(60.0, gt=0, le=86400, description="Seconds after which a step fails.")
    client_cert: Annotated[Path | None, AfterValidator(_no_certificate)] = Field(
        None, description="Not available: Chromium takes no certificate from a file."
    )
    client_key: Annotated[Path | None, AfterValidator(_no_certificate)] = Field(
        None, description="Not available: Chromium takes no certificate from a file."
    )
    think_s: float = Field(
        0.0,
        ge=0,
        le=3600,
        description="Seconds of further writing before publishing and before saving again.",
    )
    chromium: Annotated[Path | None, NoLoad("where the program is; its version shapes load")] = Field(
        None, description="Path of the browser; default: the system's Chromium."
    )
    no_screenshots: bool = Field(False, description="Take no screenshots of the first day's steps.")

    @model_validator(mode="after")
    def _check_end(self) -> Self:
        if self.iterations is not None and self.duration_s is not None:
            raise ValueError("--duration-s: cannot be combined with --iterations")
        return self


def _require_one(value: int) -> int:
    if value != 1:
        raise ValueError("must be 1: a clone is upgraded once, by one user; to repeat, clone again")
    return value


def _check_version(value: str) -> str:
    from plimsoll.scenarios.wordpress.upgrade import is_version

    if not is_version(value):
        raise ValueError("must be a version, or the start of one, such as 6.1")
    return value


Version = Annotated[str, AfterValidator(_check_version)]


class UpgradeWordpressSettings(ProbedSettings, WordpressSettings):
    """Settings of the upgrade of WordPress."""

    iterations: Annotated[int, AfterValidator(_require_one)] = Field(
        1, description="Always 1: a clone is upgraded once."
    )
    users: Annotated[int, AfterValidator(_require_one)] = Field(1, description="Always 1.")
    duration_s: Annotated[float | None, AfterValidator(refuse_duration)] = Field(
        None, description="Not available: an upgrade runs to its end."
    )
    timeout_s: float = Field(
        3600.0, gt=0, le=86400, description="Seconds of silence (a phase is silent) until a request fails."
    )
    from_version: Version | None = Field(None, description="Upgrade only from this version, such as 6.1.")
    to_version: Version | None = Field(None, description="Upgrade only to this version, such as 6.8.")


def _check_pages(path: Path) -> Path:
    from plimsoll.scenarios.xenforo.installer import read_pages

    try:
        read_pages(path)
    except SettingsError as error:
        raise ValueError(str(error)) from None
    return path


def _check_remote(text: str) -> str:
    from plimsoll.common.ssh import Access

    return str(Access.parse(text))


Remote = Annotated[str, AfterValidator(_check_remote)]


class UpgradeXenforoSettings(ProbedSettings, ChangingSettings):
    """Settings of the upgrade of a forum."""

    idle_keys: ClassVar[IdleKeys] = [
        (key, lambda its: its.ssh, "with --ssh nobody logs in to the site: remove one of them")
        for key in ("user", "password_file")
    ]

    iterations: int = Field(1, ge=1, le=1, description="Always 1: a clone is upgraded once.")
    users: int = Field(1, ge=1, le=1, description="Always 1.")
    duration_s: Annotated[float | None, AfterValidator(refuse_duration)] = Field(
        None, description="Not available: an upgrade runs to its end."
    )
    timeout_s: float = Field(
        3600.0, gt=0, le=86400, description="Seconds of silence after which a page, or the command, fails."
    )
    installer: Annotated[Path, AfterValidator(_check_pages)] = Field(
        STAND_IN,
        description="YAML file of the installer's pages; default: plimsoll/scenarios/xenforo/stand-in.yml.",
    )
    ssh: Annotated[Remote | None, NoLoad("where the load goes")] = Field(
        None, description="USER@HOST[:PORT] on which to run the upgrade's command, in place of the pages."
    )
    ssh_command: str | None = Field(
        None,
        description="The command, such as 'cd /var/www/forum && php cmd.php xf:upgrade --no-interaction'.",
    )
    ssh_key: Annotated[Path | None, NoLoad("who sends it")] = Field(
        None, description="Private key; default: the agent's keys, then those of ~/.ssh."
    )
    ssh_known_hosts: Annotated[Path | None, NoLoad("what proves where it goes")] = Field(
        None, description="File of known host keys; default: ~/.ssh/known_hosts."
    )

    @model_validator(mode="after")
    def _check_ssh(self) -> Self:
        if self.ssh is None and (self.ssh_command or self.ssh_key or self.ssh_known_hosts):
            raise ValueError("--ssh: is missing: name user@host, on which the command runs")
        if self.ssh is not None and not self.ssh_command:
            raise ValueError("--ssh-command: is missing: name the command that upgrades the forum")
        if self.ssh is not None and self.pages.command is None:
            raise ValueError("--installer: the file has no key command, which --ssh needs (docs/xenforo.md)")
        return self

    @property
    def pages(self) -> "Pages":
        """The description of the pages in the file `installer`."""
        from plimsoll.scenarios.xenforo.installer import read_pages

        return read_pages(self.installer)

    @property
    def needs_account(self) -> bool:
        """True if these settings log in; the command over SSH does not."""
        return self.ssh is None

    def recorded_settings(self) -> dict[str, Any]:
        """Return the settings for `run.json`, with the pages' description in place of its file."""
        kept = super().recorded_settings()
        for name in ("installer", "ssh_key", "ssh_known_hosts"):
            kept.pop(name, None)
        if self.ssh_command:
            kept["ssh_command"] = redact(self.ssh_command)
        return kept | {"installer": self.pages.model_dump(mode="json", by_alias=True)}
