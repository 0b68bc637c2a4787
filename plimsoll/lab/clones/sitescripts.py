"""Calls of `site/up` and `site/down` with all their settings, and none of the caller's own. Pure."""

from collections.abc import Mapping

from plimsoll.lab.steps.step import Command

_DOWN_S = 300.0
# Empty means unset, so the caller's own environment never shows through.
_KNOWN = (
    *("SITE_NAME", "BACKEND_DIR", "SITE_PORT", "SITE_BIND", "SITE_SIZE", "SITE_SEED", "SITE_EDITOR"),
    *("SITE_LARGE_GIB", "SITE_WAIT_S", "SITE_CONFIG", "WP_UPGRADE_ZIP", "DB_BUFFER_POOL", "PHP_CHILDREN"),
    *("VARNISH_STORAGE", "KEEP", "IMAGES"),
)


def site_up(
    project: str, name: str, folder: str, settings: Mapping[str, str], says: str, timeout_s: float
) -> Command:
    """Return the step that starts the site called `name` on `folder`, and fills a new folder."""
    return _called(
        f"{project}/site/up", {"SITE_NAME": name, "BACKEND_DIR": folder, **settings}, says, timeout_s
    )


def site_down(project: str, name: str, folder: str, says: str, keep: bool = True) -> Command:
    """Return the step that ends it, whether it runs or not; its data stay with `keep`."""
    settings = {"SITE_NAME": name, "BACKEND_DIR": folder, "KEEP": "1" if keep else ""}
    return _called(f"{project}/site/down", settings, says, _DOWN_S)


def _called(script: str, settings: Mapping[str, str], says: str, timeout_s: float) -> Command:
    assigned = [f"{key}={settings.get(key, '')}" for key in _KNOWN if settings.get(key)]
    unset = [word for key in _KNOWN if not settings.get(key) for word in ("-u", key)]
    return Command(says, ("env", *unset, *assigned, script), timeout_s=timeout_s)
