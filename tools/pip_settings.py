"""Print pip's settings as uv has them, for a shell to evaluate.

uv reads neither pip.conf nor PIP_INDEX_URL; a mirror, proxy or certificate named there is meant for it too.
"""

import os
import shlex
from collections.abc import Mapping
from configparser import RawConfigParser
from pathlib import Path

# What uv reads from its environment, by pip's name for it.
_LISTS = {"extra-index-url": ("UV_INDEX", " "), "trusted-host": ("UV_INSECURE_HOST", " ")}
_SINGLE = {
    "index-url": ["UV_DEFAULT_INDEX"],
    "cert": ["SSL_CERT_FILE"],
    "client-cert": ["SSL_CLIENT_CERT"],
    "proxy": ["HTTP_PROXY", "HTTPS_PROXY"],
    "default-timeout": ["UV_HTTP_TIMEOUT"],
    "timeout": ["UV_HTTP_TIMEOUT"],
}


def files(environment: Mapping[str, str]) -> list[Path]:
    """Return the files that pip reads, from weak to strong."""
    named = environment.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return []
    home = Path(environment.get("HOME", "/"))
    shared = environment.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    own = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    found = [*(Path(folder) / "pip" for folder in shared.split(os.pathsep)), Path("/etc")]
    found += [] if named and Path(named).exists() else [home / ".pip", own / "pip"]
    return [*(folder / "pip.conf" for folder in found), *([Path(named)] if named else [])]


def read(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what pip's files and its environment set for `pip install`, by the name of the option."""
    found: dict[str, str] = {}
    for file in files(environment):
        parser = RawConfigParser()
        parser.read(file, encoding="utf-8")
        for section in ("global", "install"):
            found |= dict(parser[section]) if parser.has_section(section) else {}
    given = {name[4:].lower(): text for name, text in environment.items() if name.startswith("PIP_") and text}
    return {name.replace("_", "-"): text for name, text in {**found, **given}.items()}


def for_uv(pip: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which uv installs as these options of pip say."""
    # As pip does: of all indexes, whichever has the file. The hashes say which that is.
    found = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    found |= dict.fromkeys(("UV_SYSTEM_CERTS", "UV_NATIVE_TLS"), "true")  # the second for older ones
    if pip.get("no-index", "").lower() in {"1", "true", "yes", "on"}:
        found["UV_OFFLINE"] = "true"
    for name, (variable, between) in _LISTS.items():
        if name in pip:
            found[variable] = between.join(pip[name].split())
    folders = [one for one in pip.get("find-links", "").split() if "://" in one or Path(one).exists()]
    if folders:
        found["UV_FIND_LINKS"] = ",".join(folders)
    for name, variables in _SINGLE.items():
        found |= dict.fromkeys(variables, pip[name]) if name in pip else {}
    return found


def main() -> None:
    """Print an export for each setting; what is set for uv itself stays."""
    for name, text in for_uv(read(os.environ)).items():
        if name not in os.environ:
            print(f"export {name}={shlex.quote(text)}")


if __name__ == "__main__":
    main()
