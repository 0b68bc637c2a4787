"""Locust's web page refuses, in its own words, a test that may not begin."""

from collections.abc import Callable
from typing import Any

from flask import jsonify, request
from locust.env import Environment

from plimsoll.common.errors import PlimsollError

Check = Callable[[dict[str, Any], str | None], None]  # of Locust's options and host

_OWN_NAMES = {"user_count": "num_users"}  # of the form's fields, where Locust's options have another


def refuse_on_page(environment: Environment, check: Check) -> None:
    """Have `check` look at each form before Locust does; the page shows what it raises (PlimsollError).

    Without it the page says that the test began, and only the terminal why it did not.
    """
    app = environment.web_ui and environment.web_ui.app
    if not app:
        return

    def refuse() -> Any:
        if request.method != "POST" or not request.path.endswith("/swarm"):
            return None
        form = {_OWN_NAMES.get(name, name): value for name, value in request.form.items()}
        try:
            check(vars(environment.parsed_options) | form, form.get("host") or environment.host)
        except PlimsollError as error:
            return jsonify({"success": False, "message": str(error), "host": environment.host})
        return None

    app.before_request(refuse)
