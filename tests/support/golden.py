"""Golden files: what a user sees, kept as text. `make golden` writes them anew; review the diff."""

import os
from difflib import unified_diff
from pathlib import Path

GOLDEN = Path(__file__).parent.parent / "golden"


def check_golden(name: str, found: str) -> None:
    """Hold a text against ``tests/golden/NAME``, line by line; with UPDATE_GOLDEN=1 write it there.

    Raises:
        AssertionError: with the lines that differ.
    """
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found)
    wanted = path.read_text() if path.exists() else ""
    lines = unified_diff(wanted.splitlines(), found.splitlines(), "as it was", "as it is", lineterm="", n=2)
    if diff := "\n".join(lines):
        raise AssertionError(f"{name} is no longer as it was; wanted? make golden\n{diff}")
