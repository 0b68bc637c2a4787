"""What a guarded site wants, as the k6 scripts take it: in their settings, which no process list shows."""

from pathlib import Path
from typing import Any

from plimsoll.scenarios.running.access import Access, certificate_text
from plimsoll.scenarios.running.secretfile import secret_text


def script_access(access: Access) -> dict[str, Any]:
    """Return what k6/access.js reads: headers, cookies, and the texts of certificate and key.

    Raises SettingsError for files that went since they were checked.
    """
    cert, key = access.certificate or (None, None)
    return {
        "headers": dict(access.headers),
        "cookies": dict(access.cookies),
        "cert": certificate_text(Path(cert)) if cert else "",
        "key": secret_text(Path(key)) if key else "",
    }
