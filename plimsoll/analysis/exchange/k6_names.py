"""The names of k6's requests and metrics in a run directory: few, and never an address. Pure."""

from plimsoll.analysis.exchange.k6_sample import K6Definition, K6Sample
from plimsoll.analysis.exchange.kinds import route_of_url

_LONGEST = 48
_VITALS = "browser_web_vital_"
# What a browser fetches for a page (k6's tag `resource_type`), beside the page and the calls of its scripts.
FILES = {"Stylesheet", "Script", "Image", "Font", "Media", "Manifest", "Other"}
# Requests show these already; the others count things or are k6's own bookkeeping.
_NOT_MEASURES = ("http_req", "browser_http_req", "browser_data", "plimsoll_")


def route_of_tags(tags: dict[str, str]) -> str:
    """Return the route of a request.

    Its tag `step` (a browser's files apart); else `name` where the script gave one; else its group; else the
    kind of its address.
    """
    if step := tags.get("step"):
        return f"{_short(step)}: files" if tags.get("resource_type") in FILES else _short(step)
    name = tags.get("name", "")
    if name and not _address(name):
        return _short(name)
    group = tags.get("group", "").rpartition("::")[2]
    if group:
        return _short(group)
    return route_of_url(name or tags.get("url", ""))


def measure_of(sample: K6Sample, definition: K6Definition | None) -> tuple[str, str] | None:
    """Return name and unit of the measure that `sample` is a value of; None if it is of none.

    Measures are web vitals, and trends of times (`new Trend(name, true)`).
    """
    metric, tags = sample.metric, sample.tags
    if metric.startswith(_VITALS):
        if tags.get("url", "").startswith("about:"):  # an empty frame, such as an editor's canvas
            return None
        vital = metric.removeprefix(_VITALS)
        return f"{vital}: {_page(tags)}", "score" if vital == "cls" else "ms"
    if metric.startswith(_NOT_MEASURES) or definition is None:
        return None
    if definition.kind != "trend" or definition.contains != "time":
        return None
    about = tags.get("page") or tags.get("group", "").rpartition("::")[2]
    return (f"{metric}: {_short(about)}" if about else metric), "ms"


def _page(tags: dict[str, str]) -> str:
    """Web vitals come when a page is left, so that only the page itself says whose they are."""
    name = tags.get("name") or tags.get("url", "")
    return route_of_url(name) if _address(name) else _short(name)


def _address(name: str) -> bool:
    return name.startswith("/") or "://" in name or "?" in name


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
