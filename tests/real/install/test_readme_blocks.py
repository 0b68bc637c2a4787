"""Every block of the README runs as it stands: here the everyday jobs; the others elsewhere.

Of the jobs, the examples of each command's help run what is done with a lab.yml. Setting up a clone and
filling a site takes some ten minutes: it is part of `make test-lab-full`.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.support.programs import PLIMSOLL, ROOT, free_port, listens, need, wait_for
from tests.support.site import need_docker

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
JOBS = next(block for block in BLOCKS if "make site" in block)
TWO_SERVERS = JOBS.partition("# Or let")[0]
SHORT = "--speed 20 --duration 2s --runs 4"
SITE = f"PATH=$PWD/.venv/bin:$PATH\n{JOBS.splitlines()[-1]}\nplimsoll report results/latest\n"
# The first line of each block, and the test that runs it.
RUN_BY = {
    "make replay LOG=access.log": "tests/real/install/test_stock_debian.py",
    "# Which of two servers answers faster?": "tests/real/install/test_readme_blocks.py",
    "make bench": "tests/real/lab/test_bench.py",
}


def test_each_block_is_run_by_a_test() -> None:
    assert len(BLOCKS) == len(RUN_BY)
    for block, (first, test) in zip(BLOCKS, RUN_BY.items(), strict=True):
        assert block.startswith(first)
        assert (ROOT / test).is_file()


def test_two_servers_are_judged_reported_and_signed(tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "access.log", tmp_path)
    shutil.copy(ROOT / "examples" / "gates.yml", tmp_path)
    environment = os.environ | {"PATH": f"{PLIMSOLL.parent}:{os.environ['PATH']}"}
    jobs = TWO_SERVERS.replace("plimsoll ab access.log", f"plimsoll ab access.log {SHORT}")
    with ExitStack() as serving:
        for name in ("old", "new"):
            port = free_port()
            serve = [
                "plimsoll",
                "origin",
                "--log",
                "access.log",
                "--root",
                name,
                "--listen",
                f"127.0.0.1:{port}",
            ]
            origin = serving.enter_context(
                subprocess.Popen(serve, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL)
            )
            serving.callback(origin.send_signal, signal.SIGINT)
            wait_for("the origin", partial(listens, port))
            jobs = jobs.replace(f"http://{name}.example.lan", f"http://127.0.0.1:{port}")
        done = subprocess.run(
            [need("sh"), "-x"],
            input=jobs,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    (trial,) = (tmp_path / "results").glob("ab-*")
    assert re.search(r"^(PASS|FAIL|INCONCLUSIVE): candidate against baseline: ", done.stdout, re.MULTILINE)
    assert "4 runs a side" in done.stderr, done.stderr
    assert (trial / "comparison.html").is_file(), done.stderr
    assert "8 runs" in (trial / "report.html").read_text(encoding="utf-8"), done.stderr
    assert (tmp_path / "signed" / "signoff.html").is_file(), done.stderr


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    """A fresh clone; what it starts ends with it."""
    need_docker()
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", 8080)) == 0:
            pytest.skip("port 8080, which the README names, is taken")
    folder = tmp_path / "plimsoll"
    subprocess.run([need("git"), "clone", "-q", str(ROOT), str(folder)], check=True)
    yield folder
    subprocess.run([need("make"), "site-down"], cwd=folder, check=True, timeout=300)


@pytest.mark.slow
def test_a_scenario_on_the_site_of_make_site(clone: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PLIMSOLL_")}
    done = subprocess.run(
        [need("sh"), "-e", "-x"],
        input=SITE,
        cwd=clone,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=3000,
    )
    print(done.stdout)
    assert done.returncode == 0
    assert "article saved" in done.stdout
    assert "<title>" in (clone / "results" / "latest" / "report.html").read_text(encoding="utf-8")
