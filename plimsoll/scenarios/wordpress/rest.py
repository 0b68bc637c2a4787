"""WordPress's REST interface, as its own editor uses it."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from plimsoll.scenarios.running.client import (
    Check,
    Reply,
    SiteClient,
    StepFailedError,
    Trouble,
    trouble,
    words,
)
from plimsoll.scenarios.running.clonelist import Credentials
from plimsoll.scenarios.wordpress.account import rest_nonce, with_login

# Answers whatever the site's permalinks are.
ANYWHERE = "index.php?rest_route=/"
_ROOT = re.compile(r"""createRootURLMiddleware\(\s*(["'])(.+?)\1""")


def root_in(page: Reply) -> str:
    """Return the address of the interface that an editor's page names, else one that always answers. Pure."""
    found = _ROOT.search(page.text)
    return found[2].replace("\\/", "/") if found else ANYWHERE


def rest_address(root: str, path: str, query: Mapping[str, str] | None = None) -> str:
    """Return the address of `path`, such as `wp/v2/posts`, under `root`. Pure."""
    address = root + path
    if not query:
        return address
    return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"


class Rest:
    """A client of the REST interface, for a user who is logged in."""

    def __init__(self, site: SiteClient, who: Credentials, root: str = ANYWHERE) -> None:
        self.root = root
        self._site, self._who, self._nonce = site, who, ""

    def renew(self) -> None:
        """Ask for a nonce; log in again where the login was lost. Raises StepFailedError."""
        self._nonce = with_login(self._site, self._who, lambda: rest_nonce(self._site))

    def get(self, step: str, path: str, query: Mapping[str, str], check: Check | None = None) -> Reply:
        """Send a GET; see `send`."""
        return self.send(step, "GET", path, query=query, check=check)

    def send(
        self,
        step: str,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        json: Any = None,
        check: Check | None = None,
        through: SiteClient | None = None,
        **further: Any,
    ) -> Reply:
        """Send one request and return its reply, whose body is a JSON object unless `check` wants another.

        PUT and DELETE go as a POST that says so, as the editor sends them: many proxies let no other through.
        A nonce that has expired is renewed and the request sent once more; both are recorded. `through` is
        another client of the same visitor, to send it with. Raises StepFailedError.
        """
        if not self._nonce:
            self.renew()
        address = rest_address(self.root, path, query)
        headers = {"Accept": "application/json, */*;q=0.1"}
        if method in ("PUT", "DELETE"):
            headers["X-HTTP-Method-Override"], method = method, "POST"

        def once() -> Reply:
            return (through or self._site).send(
                step,
                method,
                address,
                base=self._site.base,
                headers=headers | {"X-WP-Nonce": self._nonce},
                json=json,
                check=check or is_object,
                **further,
            )

        return twice(once, self.renew)


def twice(act: Callable[[], Reply], renew: Callable[[], None]) -> Reply:
    """Return the result of `act`; if its nonce has expired, `renew` and repeat it once."""
    try:
        return act()
    except StepFailedError as error:
        if error.kind not in ("nonce_expired", "login_failed") or error.hopeless:
            raise
    renew()
    return act()


def is_object(reply: Reply) -> Trouble | None:
    """Return the trouble in a reply that is not a success with a JSON object, or None."""
    if found := trouble(reply):
        return found
    if reply.status in (200, 201) and isinstance(reply.data, dict):
        return None
    if reply.location:
        return Trouble("check_failed", f"status {reply.status} leads to {reply.location}")
    return Trouble("check_failed", f"status {reply.status} and no JSON object: {words(reply.text)}")
