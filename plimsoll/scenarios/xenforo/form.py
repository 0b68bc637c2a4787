"""Reads an installer's forms out of its pages. Pure."""

from dataclasses import dataclass
from urllib.parse import urljoin

from lxml.cssselect import CSSSelector
from lxml.html import HtmlElement

from plimsoll.scenarios.running.client import Reply

TOKEN = "_xfToken"  # noqa: S105 the name of a field
_UNSEEN = ("script", "style", "template", "noscript", "head")


@dataclass(frozen=True)
class Form:
    """A form to send; `address` is absolute, `fields` are its hidden ones in their order."""

    address: str
    method: str
    fields: tuple[tuple[str, str], ...]

    def with_fields(self, further: dict[str, str]) -> "Form":
        """Return the form with further fields; one that is there already is replaced."""
        kept = tuple(field for field in self.fields if field[0] not in further)
        return Form(self.address, self.method, kept + tuple(further.items()))

    def without_token(self) -> "Form":
        """Return the form as it is but for its token, which is new each time."""
        return Form(self.address, self.method, tuple(f for f in self.fields if f[0] != TOKEN))


def form_of(reply: Reply, selector: str) -> Form | None:
    """Return the first form that `selector` finds, or that contains its match; None if there is none."""
    for found in CSSSelector(selector)(reply.page):
        form = next((e for e in (found, *found.iterancestors()) if e.tag == "form"), None)
        if form is not None and not _unseen(form):
            return _read(reply, form)
    return None


def _read(reply: Reply, form: HtmlElement) -> Form:
    bases = reply.page.xpath("//base/@href")
    base = urljoin(reply.url, str(bases[0])) if bases else reply.url
    action = form.get("action")
    name = form.get("id")
    inputs = form.xpath(".//input") + (reply.page.xpath("//input[@form=$name]", name=name) if name else [])
    fields = [
        (str(e.get("name")), str(e.get("value") or ""))
        for e in inputs
        if (e.get("type") or "").lower() == "hidden" and e.get("name") and e.get("disabled") is None
    ]
    method = "POST" if (form.get("method") or "").lower() == "post" else "GET"
    # An empty action means the page itself, whatever its base.
    address = urljoin(base, action.strip()) if action and action.strip() else reply.url
    return Form(address, method, tuple(fields))


def text_at(reply: Reply, selector: str) -> str:
    """Return the visible text of the first element with text that `selector` finds; else an empty string."""
    for found in CSSSelector(selector)(reply.page):
        if not _unseen(found) and (text := seen_text(found)):
            return text
    # A page's title is in its head.
    return " ".join(str(reply.page.findtext(".//title") or "").split()) if selector == "title" else ""


def seen_text(element: HtmlElement) -> str:
    """Return the text in `element` without scripts and the like, white space collapsed."""
    # Collected without recursion: a page may be nested to any depth.
    parts: list[str] = []
    waiting: list[HtmlElement | str] = [element]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            parts.append(one)
            continue
        if isinstance(one.tag, str) and one.tag not in _UNSEEN:
            for child in reversed(one):
                waiting += [child.tail or "", child]
            waiting.append(one.text or "")
    return " ".join(" ".join(parts).split())


def _unseen(element: HtmlElement) -> bool:
    return any(e.tag in _UNSEEN for e in (element, *element.iterancestors()))
