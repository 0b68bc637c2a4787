"""Programs `zpool` and `zfs` that stand in for ZFS, and show what it printed once."""

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.programs import LONGEST_S, ROOT

STATUS = ROOT / "tests" / "fixtures" / "saturators" / "zpool-status"


class Zfs:
    """Says what its files hold, and notes what it is asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        self._program(
            "zpool", "status) cat status ;; scrub) [ ! -e after ] || cp after status ;; list) echo 1000"
        )
        self._program("zfs", 'get) cat mark 2>/dev/null ;; set) echo "${2#*=}" >mark ;; inherit) rm -f mark')
        (folder / "bin" / "sleep").write_text("#!/bin/sh\ncp next status\n")
        (folder / "bin" / "sleep").chmod(0o755)
        self.next("openzfs-2.1-done")

    def _program(self, name: str, cases: str) -> None:
        file = self.folder / "bin" / name
        file.write_text(
            f'#!/bin/sh\ncd {self.folder}\necho "{name} $*" >>asked\ncase $1 in {cases} ;; esac\n'
        )
        file.chmod(0o755)

    def status(self, fixture: str) -> None:
        (self.folder / "status").write_bytes((STATUS / f"{fixture}.txt").read_bytes())

    def next(self, fixture: str) -> None:
        """What the status is after a second."""
        (self.folder / "next").write_bytes((STATUS / f"{fixture}.txt").read_bytes())

    def after(self, fixture: str) -> None:
        """What the status is once a scrub was asked for."""
        (self.folder / "after").write_bytes((STATUS / f"{fixture}.txt").read_bytes())

    def mark(self, text: str) -> None:
        (self.folder / "mark").write_text(f"{text}\n")

    def run(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        return subprocess.run(
            words,
            cwd=self.folder,
            env={"PATH": path, "TZ": "UTC"},
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
        )

    @property
    def changes(self) -> list[str]:
        file = self.folder / "asked"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line for line in lines if not re.match(r"zpool (status|list)|zfs get", line)]
