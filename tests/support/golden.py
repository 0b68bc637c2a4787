"""Golden files: what a user sees, kept as text. `make golden` writes them anew; review the diff."""

import os
from pathlib import Path

GOLDEN = Path(__file__).parent.parent / "golden"


def check_golden(name: str, found: str) -> None:
    """Hold a text against ``tests/golden/NAME``, line by line; with UPDATE_GOLDEN=1 write it there.

    Raises:
        AssertionError: pytest prints which lines differ.
    """
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found)
    wanted = path.read_text() if path.exists() else ""
    assert found.splitlines() == wanted.splitlines(), f"{name} is no longer as it was; wanted? make golden"
