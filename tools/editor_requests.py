"""What the block editor's requests are of: paths without what only one site, run or session has. Pure."""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

# Files that PHP puts together are files too.
_FILE = re.compile(
    r"\.(?:css|js|json|mjs|map|png|jpe?g|gif|svg|webp|avif|ico|woff2?|ttf|eot)$"
    r"|/load-(?:scripts|styles)\.php$"
)
_REST = re.compile(r"(?:^|/)wp-json/(.*)$")
_NUMBER = re.compile(r"(?<![\w.-])\d+(?![\w.-])")
_PART = re.compile(r'name="([^"]+)"[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n([^\r\n]*)')
_KEPT_VALUES = frozenset({"action", "screen_id", "has_focus"})


def rest_path(path: str, query: Mapping[str, str]) -> str | None:
    """Return the path below the REST interface, None where the request is not one of it."""
    if "rest_route" in query:
        return query["rest_route"].strip("/")
    found = _REST.search(path)
    return found[1].strip("/") if found else None


def general(text: str, names: Mapping[str, str]) -> str:
    """Return `text` with `{post}` and the like for the numbers in `names`, and `{id}` for all others."""
    return _NUMBER.sub(lambda found: "{" + names.get(found[0], "id") + "}", text)


def _value(text: str, names: Mapping[str, str]) -> str:
    """Return `text` as it is if it is another number; a word of `names` is replaced within it, too."""
    for word, name in names.items():
        if text == word or (word in text and not word.isdigit()):
            text = text.replace(word, "{" + name + "}")
    return text


def request_of(method: str, target: str, names: Mapping[str, str]) -> tuple[str, str, dict[str, str]]:
    """Return a request's method, its path below the site (REST: below the interface), and its query."""
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    below = rest_path(parts.path, query)
    query.pop("rest_route", None)
    dropped = {name for name in query if "nonce" in name or name == "_locale" or name.isdigit()}
    path = general(unquote(below if below is not None else parts.path.lstrip("/")), names)
    return method, path, {name: _value(query[name], names) for name in query if name not in dropped}


def kind_of(method: str, target: str) -> str | None:
    """Return the kind of a request, such as `GET wp/v2/categories`; None for what is not the editor's.

    Its method is as a log has it: POST also where a header says PUT.
    """
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if (below := rest_path(parts.path, query)) is not None:
        return f"{method} {general(unquote(below), {})}"
    if _FILE.search(parts.path):
        return "file"
    if parts.path.endswith("wp-admin/admin-ajax.php"):
        action = query.get("action", "")
        # Until an administrator has been there for the first time, every page of the admin side asks this.
        return None if action == "wp-compression-test" else f"{method} admin-ajax {action}".strip()
    if parts.path.endswith("wp-admin/post-new.php"):
        return f"{method} editor"
    return None


def body_of(content_type: str, body: str | None) -> dict[str, Any]:
    """Return the names in a body, with the few values that say what it asks for; never what was typed."""
    if not body:
        return {}
    if "json" in content_type:
        try:
            sent = json.loads(body)
        except ValueError:
            return {}
        return {"json": sorted(sent) if isinstance(sent, dict) else []}
    if "multipart" in content_type:
        pairs = dict(_PART.findall(body))
    else:
        pairs = dict(parse_qsl(body, keep_blank_values=True))
    return {
        "form": sorted(pairs),
        **{name: pairs[name] for name in sorted(_KEPT_VALUES & pairs.keys())},
    }
