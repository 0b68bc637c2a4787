"""The version of each peer, from the peer itself."""

import re
import shutil
import subprocess
from collections.abc import Sequence

from benchmarks import nginx
from benchmarks.paths import AGAINST, GRINDER, HERE, K6, K6X, LOCUST, OHA, REPLAY, WRK2


def of(name: str) -> str:
    """Raises OSError, SubprocessError or ValueError where the peer does not run."""
    if name in ("hey", "vegeta"):
        return pinned_in(((HERE / "go" / "go.mod").read_text()), f"/{name}")
    if name == "grinder":
        return _grinder()
    if name in ("arrivals", "stall"):
        return "ours"
    return version_in(_said(_COMMANDS[name]()))


def version_in(text: str) -> str:
    """The first thing that looks like a version."""
    found = re.search(r"\bv?(\d+\.\d+(?:\.\d+)*)", text)
    if found is None:
        raise ValueError(f"no version in {text[:60]!r}")
    return found[1]


def pinned_in(go_mod: str, path: str) -> str:
    """Hey and vegeta do not know their versions; the module file does."""
    found = re.search(re.escape(path) + r"(?:/v\d+)? v(\S+)", go_mod)
    if found is None:
        raise ValueError(f"{path} is not pinned")
    return found[1]


def _grinder() -> str:
    jars = [path.name for path in (GRINDER / "lib").glob("grinder-core-*.jar")]
    if not jars:
        raise ValueError("its jar is not there")
    return f"{version_in(jars[0])} on Java {version_in(_said(['java', '-version']))}"


def _said(argv: Sequence[str]) -> str:
    """Wrk ends with 1 when asked for its version: only what it says counts."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr


_COMMANDS = {
    "replay": lambda: [str(REPLAY), "--version"],
    "against": lambda: [str(AGAINST), "--version"],
    "goaccess": lambda: [shutil.which("goaccess") or "goaccess", "--version"],
    "nginx": lambda: [nginx.program() or "nginx", "-v"],
    "wrk": lambda: ["wrk", "-v"],
    "wrk2": lambda: [str(WRK2), "-v"],
    "h2load": lambda: ["h2load", "--version"],
    "openssl": lambda: ["openssl", "version"],
    "oha": lambda: [str(OHA), "--version"],
    "k6": lambda: [str(K6), "version"],
    "k6x": lambda: [str(K6X), "version"],
    "locust": lambda: [str(LOCUST), "--version"],
}
