"""A site that was interrupted while it was filled begins again, and becomes what any other of its seed is."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.programs import LONGEST_S, ROOT, eventually, free_port, need
from tests.support.site import Filled, Site, checksums, file_checksums, left_behind, make, need_docker, run

pytestmark = pytest.mark.slow

Up = subprocess.Popen[bytes]


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Settings of a site of the test's own, which is ended whatever happens."""
    need_docker()
    name, folder = f"interrupted-{os.getpid()}", tmp_path / "data"
    yield {"BACKEND_DIR": str(folder), "SITE_NAME": name, "SITE_PORT": str(free_port()), "SITE_SEED": "1"}
    make("site-down", {"BACKEND_DIR": str(folder)})
    assert left_behind(name) == []


def test_interrupted_filling_starts_again_from_nothing(
    filled: Filled, settings: dict[str, str], tmp_path: Path
) -> None:
    folder, log = Path(settings["BACKEND_DIR"]), tmp_path / "log"

    # The filling is killed, as by a power cut; then interrupted, as by Ctrl-C.
    for end in (_kill_the_seed, _interrupt):
        up = _begin(settings, log, lambda: "categories" in log.read_text())
        end(up, settings["SITE_NAME"])
        assert up.wait(timeout=LONGEST_S) != 0
        assert "make site-down BACKEND_DIR=" in log.read_text()
        assert not (folder / "site.json").exists()

    done = make("site", settings)
    assert done.returncode == 0, done.stderr
    site = Site(settings["SITE_NAME"], f"http://127.0.0.1:{settings['SITE_PORT']}", folder)

    # Two sites of one seed are the same.
    assert checksums(site) == filled.tables
    assert file_checksums(folder) == filled.files
    for key in ("size", "seed", "counts", "versions"):  # and bytes, but MariaDB estimates those of its tables
        assert site.facts()[key] == filled.facts()[key]

    # Kept, and started again without being filled again.
    assert make("site-down", {"BACKEND_DIR": str(folder), "KEEP": "1"}).returncode == 0
    assert left_behind(site.name) == []
    assert (folder / "site.json").exists()
    done = make("site", settings)
    assert done.returncode == 0, done.stderr
    assert "make site: filling" not in done.stderr
    assert site.browser().ask("/").status == 200

    assert make("site-down", {"BACKEND_DIR": str(folder)}).returncode == 0
    assert not folder.exists()


def test_an_interrupted_site_is_cleaned_up(settings: dict[str, str], tmp_path: Path) -> None:
    folder, log = Path(settings["BACKEND_DIR"]), tmp_path / "log"
    up = _begin(settings, log, lambda: (folder / "mysql").exists())
    _interrupt(up, settings["SITE_NAME"])
    assert up.wait(timeout=LONGEST_S) != 0
    (folder / "letter.txt").write_text("mine")
    done = make("site-down", {"BACKEND_DIR": str(folder)})
    assert "contains files that are not ours; they stay" in done.stderr
    assert [path.name for path in folder.iterdir()] == ["letter.txt"]


def _begin(settings: dict[str, str], log: Path, reached: Callable[[], bool]) -> Up:
    """Starts `make site`, and returns when it has come as far as it is to come."""
    log.touch()
    with log.open("w") as file:
        command = [need("make"), "-C", str(ROOT), "site"]
        environment = os.environ | settings
        up = subprocess.Popen(
            command,
            env=environment,
            stdout=file,
            stderr=file,
            start_new_session=True,
            # A shell cannot trap what its parent ignored, as a job in the background does.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    assert eventually(reached), log.read_text()
    return up


def _kill_the_seed(_: Up, name: str) -> None:
    seeds = run("docker", "ps", "-q", "--filter", f"label=plimsoll.site={name}", "--filter", "name=seed")
    assert seeds.stdout.split()
    run("docker", "kill", *seeds.stdout.split())


def _interrupt(up: Up, _: str) -> None:
    os.killpg(up.pid, signal.SIGINT)
