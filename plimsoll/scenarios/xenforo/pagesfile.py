"""The YAML file of an installer's pages."""

from pathlib import Path

from plimsoll.common.yamlfile import parse_model, read_model
from plimsoll.scenarios.xenforo.pages import Pages

STAND_IN = Path(__file__).with_name("stand-in.yml")
_MANUAL = "docs/xenforo.md"


def read_pages(path: Path) -> Pages:
    """Read and check `path`. Raises SettingsError with all problems, each with its line and remedy."""
    return read_model(path, Pages, _MANUAL)


def parse_pages(text: str, name: str) -> Pages:
    """Return the pages that `text` describes; `name` is the file's, for messages. Raises SettingsError."""
    return parse_model(text, name, Pages, _MANUAL)
