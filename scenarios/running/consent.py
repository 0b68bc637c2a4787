"""Consent to change a site: the target is listed as a clone, or the user allows this one run."""

from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from plimsoll.common.yamlfile import read_model
from scenarios.running.errors import ConsentError
from scenarios.running.settings import BaseUrl, ChangingSettings

DEFAULT = Path("plimsoll.yml")


class SiteConfig(BaseModel):
    """The file `plimsoll.yml`, which lists the clones."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    clones: list[BaseUrl] = []


def require_consent(settings: ChangingSettings, scenario: str) -> None:
    """Check that the scenario may change its target. Raises ConsentError, or SettingsError for a bad file."""
    if settings.i_may_change_this_site:
        return
    path = settings.site_config or DEFAULT
    if settings.site_config is None and not path.exists():
        clones: list[str] = []
    else:
        clones = read_config(path).clones
    if origin(settings.target) not in {origin(clone) for clone in clones}:
        raise ConsentError(
            f"{scenario} changes the site, and {settings.target} is not listed under clones in {path}: "
            "list it there, or add --i-may-change-this-site"
        )


def read_config(path: Path) -> SiteConfig:
    """Read and check `path`. Raises SettingsError with all problems."""
    return read_model(path, SiteConfig, "docs/scenarios.md")


def origin(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of `url`."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or ""), parts.port or (443 if parts.scheme == "https" else 80)
