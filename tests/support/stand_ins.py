"""Programs that stand in: Proxmox's that back up, `zpool`, `zfs`, `plimsoll`, `systemctl`, `crontab`."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from plimsoll.lab.experiment.problems import read_lab
from plimsoll.lab.schedule.installation import Schedule, ScheduleFolders
from tests.support.programs import LONGEST_S, ROOT

# Programs of Proxmox that back up: they print what the real ones printed once.

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


# `zpool` and `zfs`, which show what ZFS printed once.

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


# A `plimsoll` that does what a file says, and a `systemctl` and a `crontab` of files.

LAB = """\
name: quiet
backends: [{name: a, clone: {driver: static, target: "http://127.0.0.1:9"}}]
scenarios: [{scenario: replay, options: {log: access.log}}]
"""
_PLIMSOLL = """\
import json, shutil, signal, sys, time
from pathlib import Path
def end(code, reason, **result):
    print(json.dumps({"exit_reason": reason, **result}))
    sys.exit(code)
def note(what):
    at = time.strftime("%Y-%m-%dT%H:%M:%S.0Z", time.gmtime())
    with open(folder / "journal.jsonl", "a") as file:
        print(json.dumps({"at": at, "what": what}), file=file)
told = json.loads(Path("told.json").read_text())
with open("called.txt", "a") as file:
    print(json.dumps(sys.argv[1:]), file=file)
if sys.argv[1] == "regress":
    print(told.get("says", "nothing is worse"))
    sys.exit(told.get("regress", 0))
busy = Path("busy")
if busy.exists():
    busy.unlink()
    end(2, "busy", error="others")
if told.get("run") == 2:
    end(2, "failed", error="wrong")
folder, at_s = Path(sys.argv[-1]), time.time()
while "--resume" not in sys.argv:
    folder = Path(time.strftime("results/quiet-%Y%m%dT%H%M%SZ", time.gmtime(at_s)))
    if not folder.exists():  # folders of experiments bear the second
        (folder / "runs").mkdir(parents=True)
        shutil.copy(Path(__file__).with_name("settings.json"), folder / "lab.json")
        break
    at_s += 1
note("begun")
if told.get("hangs"):
    def stop(*_):
        note("tidied")
        end(1, "interrupted", directory=str(folder))
    signal.signal(signal.SIGINT, stop)
    Path("hangs").touch()
    time.sleep(600)
note("ended")
code = told.get("run", 0)
end(code, "unfinished" if code else "finished", directory=str(folder))
"""
_SYSTEMCTL = """\
#!/bin/sh
echo "$@" >>"$FAKES/systemctl.txt"
[ ! -e "$FAKES/no-systemd" ] || { echo "Failed to connect to bus" >&2; exit 1; }
[ "$1" != --user ] || shift
case "$1" in
enable) : >"$FAKES/enabled" ;;
restart) : >"$FAKES/active" ;;
disable) rm -f "$FAKES/enabled" "$FAKES/active" ;;
show)
    [ -e "$FAKES/active" ] && echo ActiveState=active || echo ActiveState=inactive
    [ -e "$FAKES/enabled" ] && echo UnitFileState=enabled || echo UnitFileState=disabled ;;
esac
"""
_CRONTAB = """\
#!/bin/sh
case "$1" in
-l) cat "$FAKES/table" 2>/dev/null || { echo "no crontab for you" >&2; exit 1; } ;;
-r) rm "$FAKES/table" ;;
-) cat >"$FAKES/table.new" && mv "$FAKES/table.new" "$FAKES/table" ;;
esac
"""


def python_program(path: Path, text: str) -> Path:
    """Write a program in this Python; by way of a shell, since no `#!` takes an interpreter with a space."""
    path.write_text(f"#!/bin/sh\n'''exec' {shlex.quote(sys.executable)} \"$0\" \"$@\"\n' '''\n{text}")
    path.chmod(0o755)
    return path


def program(folder: Path, **told: Any) -> Path:
    """Return a `plimsoll` in `folder`, which does what `told` says, where a lab.yml stands as well."""
    path = python_program(folder / "plimsoll", _PLIMSOLL)
    (folder / "lab.yml").write_text(LAB)
    settings = read_lab(folder / "lab.yml").model_dump_json()  # here, as importing the lab takes a second
    (folder / "settings.json").write_text(settings)
    tell(folder, **told)
    return path


def tell(folder: Path, **told: Any) -> None:
    """Say what the `plimsoll` in `folder` does from now on."""
    (folder / "told.json").write_text(json.dumps(told))


def called(folder: Path) -> list[list[str]]:
    """Return what it was called with."""
    return [json.loads(line) for line in (folder / "called.txt").read_text().splitlines()]


def fakes(folder: Path) -> dict[str, str]:
    """Return the environment in which `systemctl`, `loginctl` and `crontab` are of files in `folder`."""
    folder.mkdir()
    for name, text in (
        ("systemctl", _SYSTEMCTL),
        ("crontab", _CRONTAB),
        ("loginctl", "#!/bin/sh\necho no\n"),
    ):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin", "FAKES": str(folder), "HOME": str(folder)}


def scheduled(folder: Path, **further: Any) -> tuple[Schedule, ScheduleFolders]:
    """Return a schedule of the `plimsoll` in `folder`, at 03:00 UTC since 2026-11-01, and its places."""
    place = ScheduleFolders(folder / "state", folder / "system", folder / "user")
    out = folder / "nights" / "quiet"
    values: dict[str, Any] = {
        "name": "quiet",
        "lab": str(folder / "lab.yml"),
        "folder": str(folder),
        "kind": "user",
        "calendar": "*-*-* 03:00:00 UTC",
        "out": str(out),
        "history": str(out / "history.sqlite"),
        "resume_missed": True,
        "options": (),
        "program": (str(folder / "plimsoll"),),
        "installed_at": datetime(2026, 11, 1, 12, tzinfo=UTC),
    }
    schedule = Schedule(**(values | further))
    (place.state / "quiet").mkdir(parents=True, exist_ok=True)
    (place.state / "quiet" / "schedule.json").write_text(schedule.model_dump_json())
    return schedule, place
