"""A `plimsoll` that does what a file says, and a `systemctl` and a `crontab` of files."""

import json
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from plimsoll.lab.experiment.problems import read_lab
from plimsoll.lab.schedule.installation import Schedule, ScheduleFolders

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
