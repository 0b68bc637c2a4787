"""Nobody's live site is changed by accident: the target is a clone by name, or somebody says so."""

from pathlib import Path
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from scenarios.errors import ConsentError, SettingsError
from scenarios.settings import BaseUrl, ChangingSettings

DEFAULT = Path("plimsoll.yml")


class SiteConfig(BaseModel):
    """`plimsoll.yml`: which sites are clones."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    clones: list[BaseUrl] = []


def ask_leave(settings: ChangingSettings, scenario: str) -> None:
    """Return if the scenario may change its target. Raises ConsentError, or SettingsError for a bad file."""
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
            "list it there, or say --i-may-change-this-site"
        )


def read_config(path: Path) -> SiteConfig:
    """Read and check `path`. Raises SettingsError with all problems."""
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: is no YAML: {' '.join(str(error).split())}") from None
    try:
        return SiteConfig.model_validate({} if value is None else value)
    except ValidationError as error:
        problems = [
            f"{path}: {'.'.join(map(str, e['loc'])) or 'the file'}: {e['msg']}"
            for e in error.errors(include_url=False, include_input=False)
        ]
        raise SettingsError("\n".join(problems)) from None


def origin(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of `url`."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or ""), parts.port or (443 if parts.scheme == "https" else 80)
