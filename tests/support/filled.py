"""A small site that is filled once for all tests, also those of other workers: they use copies of it."""

import fcntl
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.programs import need
from tests.support.sitestack import checksums, file_checksums, make, start_site


@dataclass(frozen=True)
class Filled:
    """The data of a site that does not run, as it was filled."""

    folder: Path
    tables: dict[str, str]  # checksum by table
    files: dict[str, str]  # checksum by path under the folder

    def facts(self) -> dict[str, Any]:
        """What `site.json` says."""
        found: dict[str, Any] = json.loads((self.folder / "site.json").read_text())
        return found

    def copy_to(self, folder: Path) -> None:
        """Copy the data; `make site` takes a folder with the mark of another name for its own."""
        subprocess.run([need("cp"), "-a", "--reflink=auto", self.folder, folder], check=True)


@contextmanager
def filled_site(root: Path) -> Iterator[Filled]:
    """The site below `root`, filled by who is first to want it and removed by who is last."""
    root.mkdir(exist_ok=True)
    with _users(root) as before:
        if not (root / "sums").exists():
            _fill(root)
        (root / "users").write_text(str(before + 1))
    yield Filled(root / "data", *json.loads((root / "sums").read_text()))
    with _users(root) as before:
        (root / "users").write_text(str(before - 1))
        if before == 1:
            (root / "sums").unlink()
            _remove(root / "data")


@contextmanager
def _users(root: Path) -> Iterator[int]:
    """How many use it, which nobody changes meanwhile."""
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        users = root / "users"
        yield int(users.read_text()) if users.exists() else 0


def _fill(root: Path) -> None:
    site = start_site(root / "data", "plimsoll-filled", "block")
    sums = [checksums(site), file_checksums(site.folder)]
    done = make("site-down", {"BACKEND_DIR": str(site.folder), "KEEP": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    (root / "sums").write_text(json.dumps(sums))


def _remove(folder: Path) -> None:
    done = make("site-down", {"BACKEND_DIR": str(folder)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert not folder.exists()
