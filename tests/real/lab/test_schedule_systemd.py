"""A schedule by a real systemd: a user's manager, which has /tmp, /run and its groups to itself."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.programs import LONGEST_S, ROOT, skip_or_fail
from tests.support.stand_ins import program

GROUPS = [Path("/sys/fs/cgroup/systemd"), Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup")]
SYSTEMD = Path("/lib/systemd/systemd")

# The manager has no capability, and a /tmp and a /run of its own: what its units do stays there.
# This checkout, which may be below /tmp itself, is bound back.
# --kill-child ends all of it with us.
_OUTER = """\
set -e
for group in $GROUPS; do echo $$ >"$group/cgroup.procs"; done
exec unshare --mount --pid --fork --kill-child --mount-proc sh -ec '
mount --make-rprivate /
mount --bind "$1" /mnt
mount --bind "$3" /media
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
[ ! -d /var/spool/cron/crontabs ] || mount -t tmpfs tmpfs /var/spool/cron/crontabs
mkdir -p "$1" "$3" /run/systemd/system /run/home
mount --bind /mnt "$1"
mount --bind /media "$3"
mkdir -p -m 700 /run/user/0
exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs env -i PATH="$PATH" HOME=/run/home \\
    XDG_RUNTIME_DIR=/run/user/0 PYTHONPATH="$PYTHONPATH" AT="$1" PYTHON="$PYTHON" sh -eu -c "$2"
' sh "$1" "$2" "$3"
"""
_INNER = """\
cd "$AT"
/lib/systemd/systemd --user --log-target=null &
until systemctl --user is-system-running >/dev/null 2>&1; do sleep 0.2; done
plimsoll() { "$PYTHON" -m plimsoll schedule "$@" --state "$AT/state"; }
wait_for() {
    n=0
    until grep -q "$1" "$2" 2>/dev/null; do n=$((n + 1)); [ $n -lt 6000 ] || exit 9; sleep 0.2; done
}
"""


@pytest.fixture
def groups() -> Iterator[str]:
    """Groups of processes for the manager, in each hierarchy that systemd uses."""
    if not SYSTEMD.exists() or not shutil.which("setpriv") or os.geteuid() != 0:
        skip_or_fail("needs systemd and root")
    made = []
    for group in GROUPS:
        if (group / "cgroup.procs").exists():
            own = group / f"plimsoll-test-{os.getpid()}"
            own.mkdir()
            made.append(own)
    yield " ".join(map(str, made))
    for own in made:
        for folder in sorted(own.rglob("*/"), reverse=True):
            folder.rmdir()
        own.rmdir()


def _in_systemd(script: str, at: Path, groups: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GROUPS": groups, "PYTHONPATH": str(ROOT), "PYTHON": sys.executable}
    command = ["bash", "-c", _OUTER.replace("$GROUPS", groups), "sh", str(at), _INNER + script, str(ROOT)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=LONGEST_S, cwd=ROOT
    )


def _night(at: Path) -> dict[str, object]:
    night: dict[str, object] = json.loads((at / "state" / "quiet" / "nights.json").read_text())["nights"][-1]
    return night


_FAKED = """\
"$PYTHON" - <<'END'
import json, os
path = os.environ["AT"] + "/state/quiet/schedule.json"
told = json.load(open(path))
told["program"] = [os.environ["AT"] + "/plimsoll"]
json.dump(told, open(path, "w"))
END
"""


def test_a_timer_begins_the_night(tmp_path: Path, groups: str) -> None:
    program(tmp_path)
    script = f"""
plimsoll install lab.yml --user --at "$(date -d '+70 seconds' +%H:%M)"
plimsoll status
systemctl --user list-timers --all plimsoll-quiet.timer
{_FAKED}
wait_for '"passed"' state/quiet/nights.json
systemctl --user show plimsoll-quiet.service -p Result,ExecMainStatus
plimsoll remove quiet
systemctl --user list-unit-files 'plimsoll-*' || true
find /run/home/.config -name 'plimsoll*' | sed 's/^/left: /'
"""
    done = _in_systemd(script, tmp_path, groups)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "quiet: all is well" in done.stdout
    assert "plimsoll-quiet.service" in done.stdout
    assert "Result=success" in done.stdout
    assert "0 unit files listed" in done.stdout
    assert _night(tmp_path)["due"] is not None
    assert "left: " not in done.stdout


def test_to_stop_the_service_interrupts_the_experiment(tmp_path: Path, groups: str) -> None:
    program(tmp_path, hangs=True)
    script = f"""
plimsoll install lab.yml --user
{_FAKED}
sed -i 's/ --timer$//' /run/home/.config/systemd/user/plimsoll-quiet.service
systemctl --user daemon-reload
plimsoll status && exit 8
systemctl --user start --no-block plimsoll-quiet.service
wait_for running state/quiet/nights.json
n=0; until [ -e hangs ]; do n=$((n + 1)); [ $n -lt 300 ] || exit 9; sleep 0.2; done
systemctl --user stop plimsoll-quiet.service
systemctl --user show plimsoll-quiet.service -p Result,ExecMainStatus
echo '{{}}' >told.json
systemctl --user start plimsoll-quiet.service
"""
    done = _in_systemd(script, tmp_path, groups)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "was edited, or is from another version" in done.stdout
    assert "ExecMainStatus=3" in done.stdout
    journal = next((tmp_path / "results").glob("*/journal.jsonl")).read_text()
    assert "tidied" in journal
    night = _night(tmp_path)
    assert (night["outcome"], night["resumed"]) == ("passed", True)


def test_a_word_arrives_as_it_is(tmp_path: Path, groups: str) -> None:
    hard = tmp_path / '50% of $HOME\'s "x" \\n ü'
    hard.mkdir()
    program(tmp_path)
    script = f"""
cd "$AT"/50*
cp ../lab.yml .
"$PYTHON" -m plimsoll schedule install lab.yml --user --state "$PWD"
sed -i 's/ --timer$//' /run/home/.config/systemd/user/plimsoll-quiet.service
systemctl --user daemon-reload
AT_="$PWD"
mkdir -p "$AT/state"; ln -s "$AT_/quiet" "$AT/state/quiet"
{_FAKED}
cp ../told.json .
systemctl --user start plimsoll-quiet.service
"""
    done = _in_systemd(script, tmp_path, groups)
    assert done.returncode == 0, done.stdout + done.stderr
    night = json.loads((hard / "quiet" / "nights.json").read_text())["nights"][-1]
    assert night["outcome"] == "passed"
