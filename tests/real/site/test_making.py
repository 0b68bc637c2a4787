"""How a site is made: what it offers, holds and prints, and what becomes of one that was interrupted."""

import json
import os
import re
import shlex
import signal
import stat
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.programs import LONGEST_S, ROOT, eventually, free_port, need
from tests.support.site import Filled, Site, checksums, file_checksums, left_behind, make, need_docker, run

Up = subprocess.Popen[bytes]
VERSION = """<?php
$wp_version = '{}';
$wp_db_version = 60421;
$required_php_version = '7.2.24';
$required_mysql_version = '5.5.5';
"""


def test_a_filled_site_says_what_another_package_offers(tmp_path: Path) -> None:
    need("unzip")
    package = tmp_path / "package.zip"
    with zipfile.ZipFile(package, "w") as file:
        file.writestr("wordpress/wp-includes/version.php", VERSION.format("6.9.4"))
        for needed in ("readme.html", "wp-admin/includes/update-core.php"):
            file.writestr(f"wordpress/{needed}", "")
    data = tmp_path / "data"
    data.mkdir()
    before = {"size": "small", "wordpress": {"installed": "6.1.9", "offered": "6.8.3"}}
    (data / "site.json").write_text(json.dumps(before, indent=4))
    offer = [str(ROOT / "site" / "provision" / "offer"), "put", str(package)]
    subprocess.run(offer, env=os.environ | {"PLIMSOLL_DATA": str(data)}, check=True)
    assert json.loads((data / "mirror" / "offer.json").read_text())["version"] == "6.9.4"
    after = json.loads((data / "site.json").read_text())
    assert after == before | {"wordpress": {"installed": "6.1.9", "offered": "6.9.4"}}


SCRIPT = """
foreach (['Dice', 'Words', 'Article', 'Plan'] as $class) {
    require "%s/site/seed/$class.php";
}
$sizes = ['small', 'medium', 'large'];
$dice = new Dice(1, 'gallery');
$image = fn(int $id): array => [$id, "/wp-content/uploads/$id-300x225.jpg", "picture $id"];
echo json_encode([
    array_map(fn(string $size): int => Plan::of($size, 4_000_000_000)->gallery_images, $sizes),
    (new Article($dice, new Words($dice, 100)))->gallery(array_map($image, range(1, 100))),
]);
"""


def test_a_page_of_a_hundred_pictures() -> None:
    line = [need("php"), "-r", SCRIPT % ROOT]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    counts, markup = json.loads(done.stdout)
    assert counts == [0, 100, 100], "small, medium, large"
    shown = re.findall(r'<img src="([^"]*)" alt="([^"]*)" class="wp-image-(\d+)"/>', markup)
    assert shown == [
        (f"/wp-content/uploads/{id_}-300x225.jpg", f"picture {id_}", str(id_)) for id_ in range(1, 101)
    ]
    opened, closed = (re.findall(rf"<!-- {slash}wp:(\w+)", markup) for slash in ("", "/"))
    assert sorted(opened) == sorted(closed) == ["gallery", *["image"] * 100]


def test_the_printed_command_runs_as_it_stands(filled: Filled, tmp_path: Path) -> None:
    folder, name, port = tmp_path / "data", f"plimsoll-listed-{os.getpid()}", free_port()
    filled.copy_to(folder)
    config = tmp_path / "plimsoll.yml"
    config.write_text("# mine\nclones:\n  - http://other.test # keep\n")
    site = {"BACKEND_DIR": str(folder), "SITE_NAME": name, "SITE_PORT": str(port), "SITE_CONFIG": str(config)}
    try:
        done = make("site", site)
        assert done.returncode == 0, done.stderr
        command = done.stdout.splitlines()[-1]
        assert f"--target http://127.0.0.1:{port}" in command
        password = tmp_path / ".plimsoll" / f"{name}.password"
        assert stat.S_IMODE(password.stat().st_mode) == 0o600
        plain = {key: value for key, value in os.environ.items() if not key.startswith("PLIMSOLL_")}
        out = ["--out", str(tmp_path / "results")]
        tried = subprocess.run(
            [*shlex.split(command), *out],
            cwd=ROOT,
            env=plain,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert tried.returncode == 0, tried.stderr
        assert "article saved" in tried.stdout
    finally:
        ended = make("site-down", site)
    assert ended.returncode == 0, ended.stderr
    assert left_behind(name) == []
    assert config.read_text() == "# mine\nclones:\n  - http://other.test # keep\n"
    assert not password.exists()


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Settings of a site of the test's own, which is ended whatever happens."""
    need_docker()
    name, folder = f"interrupted-{os.getpid()}", tmp_path / "data"
    yield {"BACKEND_DIR": str(folder), "SITE_NAME": name, "SITE_PORT": str(free_port()), "SITE_SEED": "1"}
    make("site-down", {"BACKEND_DIR": str(folder)})
    assert left_behind(name) == []


@pytest.mark.slow
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


@pytest.mark.slow
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
