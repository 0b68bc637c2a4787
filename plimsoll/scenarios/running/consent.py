"""Consent to change a site: the target is listed as a clone, or the user allows this one run."""

from plimsoll.scenarios.running.clonelist import DEFAULT, config_of, origin
from plimsoll.scenarios.running.errors import ConsentError
from plimsoll.scenarios.running.settings import ChangingSettings

__all__ = ["origin", "require_consent"]


def require_consent(settings: ChangingSettings, scenario: str) -> None:
    """Check that the scenario may change its target. Raises ConsentError, or SettingsError for a bad file."""
    if settings.i_may_change_this_site:
        return
    path = settings.site_config or DEFAULT
    listed = config_of(settings.site_config)
    if listed.of(settings.target, settings.connect_to):
        return
    if ways := listed.by_another_way(settings.target):
        way = f"with --connect-to {settings.connect_to}" if settings.connect_to else "without --connect-to"
        raise ConsentError(
            f"{scenario} changes the site, and {path} lists {settings.target} as a clone "
            f"only with --connect-to {' or '.join(ways)}: this run, {way}, may reach the live site. "
            f"Add --connect-to {ways[0]}"
        )
    raise ConsentError(
        f"{scenario} changes the site, and {settings.target} is not listed under clones in {path}: "
        "list it there (plimsoll init-clone URL asks it first), or add --i-may-change-this-site"
    )
