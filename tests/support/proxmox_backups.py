"""Programs that stand in for those of Proxmox that back up: they print what the real ones printed once."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.programs import LONGEST_S, ROOT

RECORDED = ROOT / "tests" / "fixtures" / "saturators" / "backup"

# As vzdump does: it locks the guest, and unlocks it when it is told to end.
_VZDUMP = """
[ "$1" != help ] || { echo "  -notification-mode   <auto | legacy-sendmail>" >&2; exit; }
guest=$1
while [ $# -gt 0 ]; do
    case $1 in --tmpdir) own=$2 ;; --stdout) archive=1 ;; esac
    shift
done
[ -d "$own" ] || { echo "ERROR: tmpdir '$own' does not exist" >&2; exit 255; }
echo backup >"$here/lock"
mkdir "$own/vzdumptmp1_$guest"
end() {
    echo ended >>"$here/asked"
    [ -e "$here/stubborn" ] || rm -rf "$here/lock" "$own/vzdumptmp1_$guest"
    exit 255
}
trap end TERM
if [ -n "$archive" ]; then
    cat "$here/recorded" >&2
    while [ -e "$here/endless" ]; do head -c 65536 /dev/zero; sleep 0.05; done
    head -c 3000000 /dev/zero
else
    cat "$here/recorded"
    while [ -e "$here/endless" ]; do sleep 0.05; done
fi
rm -rf "$here/lock" "$own/vzdumptmp1_$guest"
"""
_QM = """
[ -e "$here/guest" ] || exit 2
case $1 in
    config) echo "name: www"; [ ! -e "$here/lock" ] || echo "lock: $(cat "$here/lock")" ;;
    unlock) rm -f "$here/lock" ;;
esac
"""
_PCT = "exit 2"
_PVESH = 'cat "$here/stored" 2>/dev/null || echo "[]"'
_PVESM = 'case $1 in free) rm -f "$here/stored" ;; status) cat "$here/storages" ;; esac'
_CLIENT = """
case $1 in
    backup) cat "$here/recorded"; while [ -e "$here/endless" ]; do sleep 0.05; done ;;
    snapshot)
        [ "$2" = list ] || rm -f "$here/snapshots"
        cat "$here/snapshots" 2>/dev/null || echo "[]"
        ;;
esac
"""


class ProxmoxNode:
    """A node with one guest. It notes what its programs are asked, and the environment that they get."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        programs = {"vzdump": _VZDUMP, "qm": _QM, "pct": _PCT, "pvesh": _PVESH, "pvesm": _PVESM}
        for name, text in {**programs, "proxmox-backup-client": _CLIENT}.items():
            file = folder / "bin" / name
            noted = f'here={folder}\n[ "$1" = help ] || echo "{name} $*" >>"$here/asked"\n'
            file.write_text(f"#!/bin/sh\n{noted}env | grep ^PBS_ >>$here/environment\n{text}")
            file.chmod(0o755)
        (folder / "guest").touch()
        (folder / "storages").write_text("Name Type Status\npbs pbs active 1 1 1 1%\n")
        self.prints("vzdump-9-stdout")

    @property
    def path(self) -> str:
        return f"{self.folder}/bin:{os.environ['PATH']}"

    def prints(self, recorded: str) -> None:
        (self.folder / "recorded").write_bytes((RECORDED / f"{recorded}.txt").read_bytes())

    def has(self, name: str, text: str = "") -> None:
        """From now on: `endless` work, a `lock`, a list of what is `stored` and so on."""
        (self.folder / name).write_text(text)

    def is_there(self, name: str) -> bool:
        return (self.folder / name).exists()

    def asked(self, program: str) -> list[str]:
        file = self.folder / "asked"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line for line in lines if line.partition(" ")[0] == program]

    def run(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PATH": self.path}
        return subprocess.run(
            words, env=environment, capture_output=True, text=True, timeout=LONGEST_S, check=False
        )
