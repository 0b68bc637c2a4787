"""The names of errors: the reason why there was no response."""

import ssl

import pytest
import requests
import urllib3.exceptions as u3

from plimsoll.scenarios.running.client import error_kind


def _verify_failed() -> requests.exceptions.SSLError:
    """As requests raises it: the innermost error has a word as its reason, not an exception."""
    inner = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate")
    inner.reason = "CERTIFICATE_VERIFY_FAILED"
    pool = u3.MaxRetryError(None, "/", u3.SSLError(inner))  # type: ignore[arg-type]
    return requests.exceptions.SSLError(pool)


ERRORS = [
    ("a certificate that nobody vouches for", _verify_failed(), "tls_failed"),
    ("a reason that is a word names nothing", u3.HTTPError("odd"), "bad_response"),
    (
        "an address where nobody listens",
        requests.ConnectionError(ConnectionRefusedError()),
        "connect_refused",
    ),
    ("silence", requests.ReadTimeout(), "timeout"),
    ("an error of our own", ValueError("ours"), "other"),
]


@pytest.mark.parametrize(("why", "error", "kind"), ERRORS, ids=[row[0] for row in ERRORS])
def test_error_kind(why: str, error: Exception, kind: str) -> None:
    assert error_kind(error) == kind, why
