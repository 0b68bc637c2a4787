"""The error kinds of `errors.json`: those of a replay first, in its order, then those of scripted steps."""

TRANSPORT = (
    "none",
    "connect_refused",
    "connect_failed",
    "tls_failed",
    "timeout",
    "reset",
    "closed_early",
    "bad_response",
    "write_failed",
    "h2_refused",
    "aborted",
    "other",
)
SCRIPTED = (
    "http_error",
    "check_failed",
    "login_failed",
    "no_permission",
    "nonce_expired",
    "upload_refused",
    "upgrade_locked",
    "upgrade_failed",
    "wrong_version",
    "php_fatal",
    "backend_dead",
    "out_of_disk",
)
NAMES = TRANSPORT + SCRIPTED
_NUMBERS = {name: number for number, name in enumerate(NAMES)}


def error_number(name: str) -> int:
    """Return the number of error kind `name` in column `error`; that of `other` for one that is unknown."""
    return _NUMBERS.get(name, _NUMBERS["other"])
