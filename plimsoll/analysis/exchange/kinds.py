"""The kind of request that an address shows: few names, and nothing of the request's own. Pure.

A shorter edition of the rules by which a replay names its routes (docs/run-format.md).
"""

import re
from functools import lru_cache
from urllib.parse import urlsplit

OTHER = "other"

_EXTENSIONS = {
    extension: kind
    for kind, extensions in {
        "image": "jpg jpeg png gif webp avif svg ico bmp tif tiff heic",
        "css-js": "css js mjs map wasm",
        "font": "woff woff2 ttf otf eot",
        "download": "zip gz tgz bz2 xz zst 7z rar tar iso pdf deb rpm bin",
        "media": "mp3 mp4 m4a ogg opus webm wav flac avi mov mkv",
        "feed": "rss atom",
        "text": "txt json csv md yml",
    }.items()
    for extension in extensions.split()
}
_RULES = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"/wp-login\.php", "login"),
        (r"/admin-ajax\.php", "admin-ajax"),
        (r"/async-upload\.php", "upload"),
        (r"/load-(styles|scripts)\.php", "css-js"),
        (r"/wp-admin(/|$)", "admin"),
        (r"/wp-json(/|$)", "rest"),
        (r"/wp-cron\.php", "cron"),
        (r"/xmlrpc\.php", "xmlrpc"),
        (r"/wp-comments-post\.php", "comment"),
        (r"(^|/)feed/?$", "feed"),
        (r"sitemap[^/]*\.xml$", "sitemap"),
        (r"^/robots\.txt$", "robots"),
        (r"^(/forums?|/community)?/(threads?|topics?)/", "thread"),
        (r"^/(forums?|community)(/|$)", "forum"),
        (r"^/(login|logout|register)\b", "login"),
        (r"^/search(/|$)", "search"),
        (r"^/(api|graphql)(/|$)", "api"),
        (r"^/\d{4}/\d{2}/", "post"),
    )
)
_QUERIES = (("s=", "search"), ("rest_route=", "rest"), ("feed=", "feed"), ("p=", "post"))
_SEGMENT = re.compile(r"[a-z][a-z_-]{0,23}")


@lru_cache(maxsize=4096)
def route_of_url(url: str) -> str:
    """Return the kind of an address or target: `page`, `image`, `login` and so on.

    Where no rule knows it, it is the first segment of the path if that is a plain word; else `other`.
    """
    try:
        parts = urlsplit(url[:2048])
    except ValueError:
        return OTHER
    path = parts.path.lower() or "/"
    if path in ("/", "/index.php"):
        return next((kind for start, kind in _QUERIES if parts.query.startswith(start)), "page")
    for pattern, kind in _RULES:
        if pattern.search(path):
            return kind
    extension = path.rpartition("/")[2].rpartition(".")[2]
    if "." in path.rpartition("/")[2]:
        return _EXTENSIONS.get(extension, "page" if extension in ("php", "html", "htm") else OTHER)
    segments = [part for part in path.split("/") if part]
    if len(segments) == 1:
        return "page"
    return segments[0] if segments and _SEGMENT.fullmatch(segments[0]) else OTHER
