"""make's own part: a folder whose name has a blank, a clone that was moved; `make setup` and its uv."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.programs import ROOT

# Programs in the place of Go, bin/replay, uv and what it installs: they note what they are called with.
GO = '#!/bin/sh\n[ "$1 $2" != "env GOVERSION" ] || echo go1.26.0\n'
NOTING = '#!/bin/sh\nfor word; do printf "%s\\n" "$word"; done >>"$(basename "$0").txt"\n'
UV = f"""#!/bin/sh
[ "$1" = pip ] || exit 0
cat >.venv/bin/plimsoll <<'END'
{NOTING}END
chmod +x .venv/bin/plimsoll
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with the Makefile, tools/, and programs that only note their arguments."""
    folder = tmp_path / "läufe und mehr"
    for name, text in (("bin/replay", NOTING), ("stubs/go", GO), ("stubs/uv", UV)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    (folder / "replay").mkdir()
    for name in (
        "Makefile",
        "pyproject.toml",
        "uv.lock",
        "tools/make-venv",
        "tools/need-go",
        "tools/need-uv",
        "tools/packages/setup.lock",
        "tools/paths.py",
        "tools/pip_settings.py",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def make(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run make in the project with these words."""
    environment = _environment(project)
    return subprocess.run(
        _line(*words), cwd=project, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def _line(*words: str) -> list[str]:
    return ["make", "GO=../stubs/go", f"PYTHON={sys.executable}", *words]


def _environment(project: Path) -> dict[str, str]:
    given = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    return given | {"PATH": f"{project / 'stubs'}:{os.environ['PATH']}"}


def arguments(project: Path, program: str) -> list[str]:
    """Return what the program was called with, and forget it."""
    noted = project / f"{program}.txt"
    words = noted.read_text().splitlines() if noted.exists() else []
    noted.unlink(missing_ok=True)
    return words


FILES = [
    "a b.log",
    "a.log",
    "b.log",
    "o'brien.log",
    'say "hi".log',
    "it's $HOME.log",
    "access.log",
    "access.log.1",
    "in it/c d.log",
]
LOGS = [
    ("one file", "a.log", ["a.log"]),
    ("one file whose name has a blank", "a b.log", ["a b.log"]),
    ("one file whose name has a quote", "o'brien.log", ["o'brien.log"]),
    ("one file whose name has double quotes", 'say "hi".log', ['say "hi".log']),
    ("one file whose name has a dollar sign", "it's $HOME.log", ["it's $HOME.log"]),
    ("several files", "a.log b.log", ["a.log", "b.log"]),
    ("several files, with quotes and a backslash", r"'a b.log' o\'brien.log", ["a b.log", "o'brien.log"]),
    ("a pattern", "access.log*", ["access.log", "access.log.1"]),
    ("a pattern among files", "b.log access.log.?", ["b.log", "access.log.1"]),
    ("a pattern with a blank", "in it/*.log", ["in it/c d.log"]),
    ("standard input", "-", ["-"]),
    ("a file that is not there, which the replay names", "no.log", ["no.log"]),
    ("a file that is not there, with a lone quote", "no'body.log", ["no'body.log"]),
    ("blanks around it", "  a.log ", ["a.log"]),
]


def test_a_log_is_named_as_it_is_called(project: Path) -> None:
    (project / "in it").mkdir()
    for name in FILES:
        (project / name).touch()
    for case, given, expected in LOGS:
        ran = make(project, "replay", f"LOG={given}")
        assert (ran.returncode, arguments(project, "replay")[5:]) == (0, expected), (case, ran.stderr)


def test_each_limit_is_a_flag_of_its_own(project: Path) -> None:
    for name in ("a.log", "p99.9=1s", "errors=1%"):  # no pattern is looked up among files
        (project / name).touch()
    for case, given, expected in (
        ("one", "p99.9=800ms", ["--fail-over", "p99.9=800ms"]),
        (
            "several",
            " p99.9=800ms  errors=0.1%",
            ["--fail-over", "p99.9=800ms", "--fail-over", "errors=0.1%"],
        ),
        ("no pattern", "p*=* errors=?%", ["--fail-over", "p*=*", "--fail-over", "errors=?%"]),
        ("none", "", []),
    ):
        ran = make(project, "replay", "LOG=a.log", f"LIMITS={given}")
        said = arguments(project, "replay")
        assert (ran.returncode, said[5:]) == (0, [*expected, "a.log"]), (case, ran.stderr)


def test_nothing_that_is_given_is_executed(project: Path) -> None:
    for line in (
        ["replay", "LOG="],
        ["replay", "LOG=a.log", "FORMAT="],
        ["replay", "LOG=a.log", "OUT="],
        ["replay", "LOG=a.log", "LIMITS="],
        ["report", "DIR="],
        ["signoff", "GATES=gates.yml", "BASELINE="],
        ["signoff", "GATES=gates.yml", "BASELINE=old", "CANDIDATE="],
        ["signoff", "BASELINE=old", "GATES="],
    ):
        for given in (
            "$(touch ran) `touch ran` $(shell touch ran)",
            "x'; touch ran; '",
            'x"; touch ran; "\n\ttouch ran',
        ):
            make(project, *line[:-1], line[-1] + given)
            assert not list(project.rglob("ran")), (line, given)


MISSPELT = [
    (
        "a letter too few",
        ["replay", "LOG=a.log", "SPED=10"],
        ["SPED is not a variable of this Makefile (did you mean SPEED?"],
    ),
    ("small letters", ["replay", "log=a.log"], ["log is not a variable of this Makefile (did you mean LOG?"]),
    (
        "two, of a target that makes only a part, appended",
        ["build", "FUZTIME+=1m", "PYHTON=3"],
        ["FUZTIME is not", "PYHTON is not", "did you mean PYTHON?"],
    ),
    (
        "without a target",
        ["NOTHING_LIKE_IT=1"],
        ["NOTHING_LIKE_IT is not a variable of this Makefile (`make` lists them)"],
    ),
    (
        "a quote in its name",
        ["report", "DI'R=x; touch ran"],
        ["DI'R is not a variable of this Makefile (did you mean DIR?"],
    ),
    (
        "what make would expand",
        ["report", "DIRR=$(shell touch ran) $(error ran) 'x\"; touch ran"],
        ["did you mean DIR?"],
    ),
]


_WAITING = """#!/bin/sh
trap 'echo INT >>signals' INT
trap 'echo TERM >>signals; exit 1' TERM
trap 'echo HUP >>signals; exit 1' HUP
read word; echo "$word" >read; echo $$ >started
while [ "$(grep -c INT signals 2>/dev/null)" != 2 ]; do sleep 0.02; done
"""
_SIGNALS = [
    ("kill of make", signal.SIGTERM, False, ["TERM"]),
    ("a terminal that was closed", signal.SIGHUP, True, ["HUP"]),
    ("two Ctrl-C: bin/replay gets the second one, too", signal.SIGINT, True, ["INT", "INT"]),
]


def test_a_replay_ends_with_make(project: Path) -> None:
    (project / "a.log").touch()
    make(project, "replay", "LOG=a.log")  # sets up
    (project / "bin/replay").write_text(_WAITING)
    for why, sent, to_all, noted in _SIGNALS:
        for name in ("signals", "started", "read"):
            (project / name).unlink(missing_ok=True)
        running = subprocess.Popen(
            ["/usr/bin/env", "--default-signal=INT,HUP", *_line("replay", "LOG=a.log")],
            cwd=project,
            env=_environment(project),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert running.stdin is not None
        running.stdin.write(b"hello\n")
        running.stdin.close()
        _wait(project, "started", 1)
        for count in range(1, len(noted) + 1):
            (os.killpg if to_all else os.kill)(running.pid, sent)
            _wait(project, "signals", count)
        running.wait(timeout=30)
        assert (project / "signals").read_text().split() == noted, why
        assert (project / "read").read_text() == "hello\n", "standard input is make's"
        with pytest.raises(ProcessLookupError):
            os.kill(int((project / "started").read_text()), 0)


def _wait(project: Path, name: str, words: int) -> None:
    """Wait until a file has so many words."""
    deadline = time.monotonic() + 30
    while not (project / name).exists() or len((project / name).read_text().split()) < words:
        assert time.monotonic() < deadline, f"{name} is not written"
        time.sleep(0.01)


def test_a_variable_that_nothing_reads_is_refused(project: Path) -> None:
    for case, words, told in MISSPELT:
        ran = make(project, *words)
        assert (ran.returncode, ran.stdout) == (2, ""), case
        assert not [part for part in told if part not in ran.stderr], (case, ran.stderr)
        assert not [*project.rglob("ran"), *project.rglob("*.txt")], case


def test_run_directories_and_labs_are_named_as_they_are_called(project: Path) -> None:
    for name in ("my runs/latest", "o'brien"):
        (project / name).mkdir(parents=True)
    for words, expected in (
        (["report"], ["report", "results/latest"]),
        (["report", "OUT=my runs"], ["report", "my runs/latest"]),
        (["report", "DIR=o'brien"], ["report", "o'brien"]),
        (["report", "DIR=\"o'brien\" 'my runs/latest'"], ["report", "o'brien", "my runs/latest"]),
        (["report", "DIR=my runs/*"], ["report", "my runs/latest"]),
    ):
        ran = make(project, *words)
        assert (ran.returncode, arguments(project, "plimsoll")) == (0, expected), ran.stderr


def test_a_clone_that_was_moved_or_copied_is_set_up_anew_before_it_replays(project: Path) -> None:
    set_up = "Setting up Python in .venv"
    assert set_up in make(project, "replay", "LOG=a.log").stderr
    assert set_up not in make(project, "replay", "LOG=a.log").stderr

    copy = project.parent / "copy of it"
    shutil.copytree(project, copy, symlinks=True)
    assert set_up in make(copy, "replay", "LOG=a.log").stderr
    assert set_up not in make(copy, "replay", "LOG=a.log").stderr

    moved = project.rename(project.parent / "moved")
    assert set_up in make(moved, "replay", "LOG=a.log").stderr
    for name in ("python", "python3"):
        (moved / ".venv" / "bin" / name).unlink()
    assert set_up in make(moved, "replay", "LOG=a.log").stderr, "its Python is gone"


def test_a_missing_go_is_named_with_what_brings_it(project: Path) -> None:
    for go, found in (
        ("nowhere", "there is none"),
        ("../stubs/old", "this is go1.19.8, and it did not fetch a newer one"),
        ("../stubs/cut-off", "this is go1.23.5 linux/amd64, and it could not fetch a newer one"),
    ):
        (project / "stubs" / "old").write_text("#!/bin/sh\necho go1.19.8\n")
        (project / "stubs" / "cut-off").write_text(
            '#!/bin/sh\n[ "$1" = version ] && echo go version go1.23.5 linux/amd64\n'
        )
        for name in ("old", "cut-off"):
            (project / "stubs" / name).chmod(0o755)
        ran = make(project, f"GO={go}", "build")
        assert (ran.returncode, f"Plimsoll needs Go 1.26 or newer; {found}." in ran.stderr) == (2, True), (
            ran.stderr
        )
        assert "bookworm-backports" in ran.stderr


# `make setup`: which uv installs, what does where there is none, and that a part that fails says so.


PINNED = (ROOT / "tools/packages/setup.lock").read_text(encoding="utf-8").split()[0].removeprefix("uv==")
OLD = "#!/bin/sh\necho 'error: Required uv version does not match' >&2\nexit 2\n"
# A Python in whose virtual environments pip only notes what it does, and lacks what stubs/fails names.
PYTHON = """#!/bin/sh
case "$*" in
-c*ensurepip*) [ ! -e stubs/no-ensurepip ]; exit ;;
-c*) exit ;;
*--without-pip*) exec '{real}' "$@" ;;
esac
mkdir -p "$3/bin"
cat >"$3/bin/python" <<'END'
#!/bin/sh
echo "pip $*" >>pip.txt
for word; do
    if grep -qsx -- "$word" stubs/fails; then
        echo "ERROR: No matching distribution found for $word" >&2
        exit 1
    fi
done
case "$*" in *setup.lock) cp stubs/pinned "$(dirname "$0")/uv" ;; esac
END
chmod +x "$3/bin/python"
"""
NOTING_UV = f"""#!/bin/sh
[ "$1" != --version ] || exec echo "uv {PINNED} (a target)"
case "$1 $2" in "cache dir") exit ;; esac
echo "$(basename "$0") $* downloads=$UV_PYTHON_DOWNLOADS index=$UV_DEFAULT_INDEX" >>uv.txt
[ "$1" != pip ] || [ ! -e stubs/offline ] || exit 1
"""


@pytest.fixture
def machine(project: Path) -> Path:
    """Return a project on a machine with a Python whose pip installs nothing, and no uv that can be used."""
    for name, text in (
        ("python", PYTHON.replace("{real}", sys.executable)),
        ("uv", OLD),
        ("pinned", NOTING_UV),
    ):
        (project / "stubs" / name).write_text(text)
        (project / "stubs" / name).chmod(0o755)
    (project / "requirements.lock").touch()
    return project


def run_make(machine: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run make with the machine's own Python."""
    return make(machine, f"PYTHON={machine / 'stubs' / 'python'}", *words)


def lines(machine: Path, program: str) -> list[str]:
    """Return each call of uv or pip, and forget them."""
    noted = machine / f"{program}.txt"
    found = noted.read_text().splitlines() if noted.exists() else []
    noted.unlink(missing_ok=True)
    return found


def test_the_uv_on_the_path_is_taken(machine: Path) -> None:
    (machine / "stubs" / "pinned").rename(machine / "stubs" / "uv")
    assert run_make(machine, "setup").returncode == 0
    assert lines(machine, "pip") == []
    exported, packages, own = lines(machine, "uv")
    assert exported.startswith("uv export --quiet --frozen --no-emit-project downloads=never")
    assert "--require-hashes -r .venv/uv.lock -r tools/packages/pip.lock downloads=never" in packages
    assert "--no-deps --no-build-isolation -e . downloads=never" in own


def test_without_one_the_pinned_uv_is_fetched_once(machine: Path) -> None:
    ran = run_make(machine, "setup")
    assert (ran.returncode, ran.stderr.count(f"Fetching uv {PINNED} ...")) == (0, 1), ran.stderr
    (fetched,) = lines(machine, "pip")
    assert "--require-hashes -r tools/packages/setup.lock" in fetched
    assert len(lines(machine, "uv")) == 3

    assert run_make(machine, "setup").stderr == ""
    assert (lines(machine, "pip"), lines(machine, "uv")) == ([], []), "there is nothing left to do"

    assert run_make(machine, ".venv/.dev").returncode == 0
    exported, packages = lines(machine, "uv")
    assert "--extra dev --extra regress" in exported
    assert "-e ." not in packages
    assert lines(machine, "pip") == []


def test_where_uv_cannot_be_had_pip_installs_what_is_exported(machine: Path) -> None:
    (machine / "stubs" / "fails").write_text("tools/packages/setup.lock\n")
    ran = run_make(machine, "setup")
    assert ran.returncode == 0, ran.stderr
    assert (
        "uv is not available: No matching distribution found for tools/packages/setup.lock. "
        "pip installs what requirements.lock names.\n"
    ) in ran.stderr
    _, packages, own = lines(machine, "pip")
    assert "--python .venv/bin/python install --require-hashes -r requirements.lock" in packages
    assert own.endswith("install --no-deps --no-build-isolation -e .")

    ran = run_make(machine, ".venv/.regress")
    assert (ran.returncode, "To install more (regress) takes uv: put it on the PATH" in ran.stderr) == (
        2,
        True,
    )


@pytest.mark.parametrize(
    ("case", "planted", "words", "said"),
    [
        ("an index out of reach", "offline", [], "Is the package index reachable?"),
        ("a Python that lacks ensurepip, and not root", "no-ensurepip", [], "apt-get install python3-venv"),
        ("Go is missing, while Python is fine", "", ["GO=nowhere"], "Plimsoll needs Go 1.26 or newer"),
    ],
)
def test_a_part_that_fails_says_so_and_is_done_again(
    machine: Path, case: str, planted: str, words: list[str], said: str
) -> None:
    (machine / "stubs" / "id").write_text("#!/bin/sh\necho 1000\n")
    (machine / "stubs" / "id").chmod(0o755)
    (machine / "stubs" / planted if planted else machine / "stubs" / "none").touch()
    for again in (False, True):
        ran = run_make(machine, "setup", *words)
        assert (ran.returncode, said in ran.stderr) == (2, True), (case, again, ran.stderr)
    (machine / "stubs" / planted if planted else machine / "stubs" / "none").unlink()
    assert run_make(machine, "setup").returncode == 0, case


def test_the_container_runs_as_no_root() -> None:
    last_stage = (ROOT / "tools" / "packages" / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    users = [line.split()[1] for line in last_stage.splitlines() if line.startswith("USER ")]
    assert users
    assert users[-1].partition(":")[0] not in ("root", "0")
