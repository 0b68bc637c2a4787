"""All that shapes the load of a run, under one digest. Pure."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from plimsoll.rundir.runfacts import Load


def load_of(settings: Mapping[str, Any]) -> Load:
    """Return the load of `settings`: plain JSON, in which secrets stand as their digests."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Load(digest=digest_of(text.encode("utf-8", errors="replace")), settings=dict(settings))


def digest_of(text: bytes) -> str:
    """Return the SHA-256 of `text` in hexadecimal."""
    return sha256(text).hexdigest()
