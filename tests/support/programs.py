"""What the end-to-end tests share: the binary, a real nginx, and what happens where a program is missing."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.waiting import eventually

REPLAY = ROOT / "bin" / "replay"


def need(program: str | Path) -> str:
    """The program's path; skips the test where it is missing, fails it in the lab's own CI."""
    found = shutil.which(str(program))
    if found:
        return found
    reason = f"{program} is not installed: make test-lab installs or builds it"
    if os.environ.get("CI") == "true" and os.environ.get("PLIMSOLL_LAB") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def free_port() -> int:
    """A TCP port on loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def open_to_all(folder: Path) -> None:
    """Let every user enter a folder of pytest's, as nginx's workers and QEMU must."""
    top = Path(tempfile.gettempdir())
    for each in (folder, *folder.parents):
        if each == top or top not in each.parents:
            return
        each.chmod(0o755)


NGINX = """
daemon off; pid {root}/nginx.pid; error_log {root}/error.log; worker_processes 1; worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
  log_format instants '$msec\\t$request\\t$http_referer\\t$http_user_agent\\t$status\\t$connection';
  access_log {root}/access.log instants;
  client_body_temp_path {root}/t1; proxy_temp_path {root}/t2; fastcgi_temp_path {root}/t3;
  uwsgi_temp_path {root}/t4; scgi_temp_path {root}/t5;
  server {{ listen {address}:{port}; root {root}/www; location / {{ try_files $uri /page.html; }} }}
}}
"""


class Nginx:
    """A real nginx that serves one page for every target and logs each request's instant.

    On loopback, or at `address` inside of what `within` enters, such as a network namespace. `setup` is its
    configuration, in which `{root}`, `{address}` and `{port}` stand for themselves.
    """

    def __init__(
        self, root: Path, address: str = "127.0.0.1", within: tuple[str, ...] = (), setup: str = NGINX
    ) -> None:
        program = need("nginx")
        self.port = free_port()
        self.url = f"http://{address}:{self.port}"
        self.log = root / "access.log"
        (root / "www").mkdir()
        (root / "www" / "page.html").write_bytes(b"x" * 1024)
        for folder in (root, root / "www"):
            folder.chmod(0o755)
        config = root / "nginx.conf"
        config.write_text(setup.format(root=root, address=address, port=self.port))
        self.process = subprocess.Popen([*within, program, "-c", str(config), "-e", str(root / "error.log")])
        answers = [*within, "bash", "-c", f"exec 3<>/dev/tcp/{address}/{self.port}"]

        def has_begun() -> bool:
            asked = subprocess.run(answers, stderr=subprocess.DEVNULL, check=False)
            return asked.returncode == 0 or self.process.poll() is not None

        assert eventually(has_begun) and self.process.poll() is None, (root / "error.log").read_text()

    def stop(self) -> None:
        """Ends the server when it has written its log."""
        self.process.terminate()
        self.process.wait()


Replay = Callable[..., subprocess.CompletedProcess[str]]
