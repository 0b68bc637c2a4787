"""Locust replaces parts of the standard library when it is imported: so do that before requests is."""

import locust  # noqa: F401
