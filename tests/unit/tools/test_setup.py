"""`make setup`: which uv installs, what does where there is none, and that a part that fails says so."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs import ROOT
from tests.unit.tools.test_make import make, project

__all__ = ["project"]

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


def run(machine: Path, *words: str) -> subprocess.CompletedProcess[str]:
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
    assert run(machine, "setup").returncode == 0
    assert lines(machine, "pip") == []
    exported, packages, own = lines(machine, "uv")
    assert exported.startswith("uv export --quiet --frozen --no-emit-project downloads=never")
    assert "--require-hashes -r .venv/uv.lock -r tools/packages/pip.lock downloads=never" in packages
    assert "--no-deps --no-build-isolation -e . downloads=never" in own


def test_without_one_the_pinned_uv_is_fetched_once(machine: Path) -> None:
    ran = run(machine, "setup")
    assert (ran.returncode, ran.stderr.count(f"Fetching uv {PINNED} ...")) == (0, 1), ran.stderr
    (fetched,) = lines(machine, "pip")
    assert "--require-hashes -r tools/packages/setup.lock" in fetched
    assert len(lines(machine, "uv")) == 3

    assert run(machine, "setup").stderr == ""
    assert (lines(machine, "pip"), lines(machine, "uv")) == ([], []), "there is nothing left to do"

    assert run(machine, ".venv/.dev").returncode == 0
    exported, packages = lines(machine, "uv")
    assert "--extra dev --extra regress" in exported
    assert "-e ." not in packages
    assert lines(machine, "pip") == []


def test_where_uv_cannot_be_had_pip_installs_what_is_exported(machine: Path) -> None:
    (machine / "stubs" / "fails").write_text("tools/packages/setup.lock\n")
    ran = run(machine, "setup")
    assert ran.returncode == 0, ran.stderr
    assert (
        "uv is not available: No matching distribution found for tools/packages/setup.lock. "
        "pip installs what requirements.lock names.\n"
    ) in ran.stderr
    _, packages, own = lines(machine, "pip")
    assert "--python .venv/bin/python install --require-hashes -r requirements.lock" in packages
    assert own.endswith("install --no-deps --no-build-isolation -e .")

    ran = run(machine, ".venv/.regress")
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
        ran = run(machine, "setup", *words)
        assert (ran.returncode, said in ran.stderr) == (2, True), (case, again, ran.stderr)
    (machine / "stubs" / planted if planted else machine / "stubs" / "none").unlink()
    assert run(machine, "setup").returncode == 0, case


def test_the_container_runs_as_no_root() -> None:
    last_stage = (ROOT / "tools" / "packages" / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    users = [line.split()[1] for line in last_stage.splitlines() if line.startswith("USER ")]
    assert users
    assert users[-1].partition(":")[0] not in ("root", "0")
