"""Reads the forms of a page as a browser would send them. Pure."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin

from plimsoll.scenarios.running.client import Reply

_BUTTONS = ("submit", "button", "image", "reset", "file")


def form_at(reply: Reply, xpath: str) -> Any | None:
    """Return the first form element that `xpath` finds in the page, or None."""
    found = reply.page.xpath(xpath)
    return found[0] if found else None


def fields(form: Any, given: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """Return the fields of `form` that a browser would send if its user had filled in only those `given`.

    Pairs of name and value, in the form's order; buttons and files are left out.
    """
    given = given or {}
    sent = []
    for element in form.xpath(".//input | .//textarea | .//select"):
        name, kind = str(element.get("name") or ""), (element.get("type") or "").lower()
        if not name or name in given or element.get("disabled") is not None or kind in _BUTTONS:
            continue
        if kind in ("checkbox", "radio") and element.get("checked") is None:
            continue
        sent.append((name, _value(element, kind)))
    return sent + list(given.items())


def action(reply: Reply, form: Any) -> str:
    """Return the absolute address that `form` is sent to."""
    return urljoin(reply.url, (form.get("action") or "").strip()) or reply.url


def _value(element: Any, kind: str) -> str:
    if element.tag == "textarea":
        return str(element.text_content()).removeprefix("\n")
    if element.tag == "select":
        chosen = element.xpath(".//option[@selected]") or element.xpath(".//option")
        return str(chosen[0].get("value") or "") if chosen else ""
    return str(element.get("value") or ("on" if kind in ("checkbox", "radio") else ""))
