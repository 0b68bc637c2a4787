"""k6's error codes (its lib/netext/httpext/error_codes.go) as kinds of errors.json. Pure."""

_EXACT = {
    1050: "timeout",
    1201: "write_failed",
    1211: "timeout",
    1212: "connect_refused",
    1220: "reset",
    1701: "bad_response",
}
_RANGES = (
    (1100, 1109, "connect_failed"),  # the name cannot be resolved
    (1110, 1111, "other"),  # k6's own blockHostnames and blacklistIPs: it was never sent
    (1210, 1219, "connect_failed"),
    (1300, 1399, "tls_failed"),
    (1610, 1699, "h2_refused"),
)
# Code 1000 is all that k6 has no code for; its text is Go's own.
_WORDS = (
    ("malformed HTTP", "bad_response"),
    ("transport connection broken", "bad_response"),
    ("EOF", "closed_early"),
    ("server closed", "closed_early"),
    ("connection reset", "reset"),
    ("broken pipe", "write_failed"),
    ("context canceled", "aborted"),
    ("timeout", "timeout"),
)
DIAL_TIMEOUT_CODE = 1211


def error_kind(code: int, text: str, status: int) -> str:
    """Return the name in errors.json for k6's tags `error_code` (0: none), `error` and `status`.

    A whole response is no error, whatever its status: k6's codes 1400 to 1599 only repeat that.
    """
    if status > 0 or (code == 0 and not text):
        return "none"
    if code in _EXACT:
        return _EXACT[code]
    for first, last, kind in _RANGES:
        if first <= code <= last:
            return kind
    return next((kind for words, kind in _WORDS if words in text), "other")
