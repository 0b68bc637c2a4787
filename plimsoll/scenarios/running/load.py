"""The load of a scenario: what of its settings shapes it."""

from hashlib import sha256
from pathlib import Path
from typing import Any

from plimsoll import __version__
from plimsoll.rundir.load import digest_of, load_of
from plimsoll.rundir.runfacts import Load
from plimsoll.scenarios.running.access import ACCESS_FILES
from plimsoll.scenarios.running.settings import IteratedSettings, ScenarioSettings

# Settings that shape no load, and why. All others do: tests/unit/scenarios/test_load.py names them.
SHAPELESS = {
    "target": "where the load goes",
    "connect_to": "where the load goes",
    "insecure": "what proves where it goes",
    "ssh": "where the load goes",
    "ssh_key": "who sends it",
    "ssh_known_hosts": "what proves where it goes",
    "user": "who sends it",
    "password_file": "who sends it",
    **dict.fromkeys(ACCESS_FILES, "what lets it in"),
    "login_path": "where it logs in",
    "site_config": "whether it may be sent",
    "i_may_change_this_site": "whether it may be sent",
    "backend": "a name",
    "repeat": "a name",
    "out": "where it is written",
    "cache": "where what is sent is kept",
    "chromium": "where the program is; its version shapes load",
    "max_p999_ms": "what the run is held against",
    "dashboard": "what is shown",
}
_SECRET = ("ssh_command",)  # it may hold a password


def load_of_scenario(scenario: str, settings: ScenarioSettings, versions: dict[str, str]) -> Load:
    """Return the load of `scenario` with `settings`; `versions` are those of the programs that it runs on.

    Files count by what is in them: they are read.
    """
    shaping = {
        name: _kept(name, getattr(settings, name))
        for name in type(settings).model_fields
        if name not in SHAPELESS
    }
    if isinstance(settings, IteratedSettings):
        shaping["iterations"] = settings.planned
    programs = {f"{name}_version": version for name, version in versions.items()}
    return load_of(
        {"program": "scenario", "program_version": __version__, "scenario": scenario} | programs | shaping
    )


def _kept(name: str, value: Any) -> Any:
    if isinstance(value, Path):
        return _content(value)
    return digest_of(str(value).encode()) if name in _SECRET and value is not None else value


def _content(path: Path) -> str | None:
    """Return the digest of a file, or of the files in a folder; None where they cannot be read."""
    whole = sha256()
    try:
        files = sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
        for file in files:
            with file.open("rb") as opened:
                while block := opened.read(1 << 20):
                    whole.update(block)
    except OSError:
        return None  # whoever uses the file says what is wrong with it
    return whole.hexdigest()
