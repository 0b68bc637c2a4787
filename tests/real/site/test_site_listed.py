"""`make site` ends with the command to try next, which needs nothing more: no export, no consent."""

import os
import shlex
import stat
import subprocess
from pathlib import Path

from tests.support.programs import ROOT, free_port
from tests.support.site import Filled, left_behind, make


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
        ran = subprocess.run(
            [*shlex.split(command), *out],
            cwd=ROOT,
            env=plain,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert ran.returncode == 0, ran.stderr
        assert "article saved" in ran.stdout
    finally:
        ended = make("site-down", site)
    assert ended.returncode == 0, ended.stderr
    assert left_behind(name) == []
    assert config.read_text() == "# mine\nclones:\n  - http://other.test # keep\n"
    assert not password.exists()
