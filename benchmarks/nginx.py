"""An nginx on loopback, tuned so that the clients are what limits."""

import http.client
import os
import re
import resource
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.background import background, cpu_seconds
from benchmarks.measure import SERVER_CPU, RunFailedError

FILE_BYTES = 1024
FILE_PATH = "/1k.bin"
_SPARE_FILES = 100
ANY_PATH = "/pages/"  # every target below is answered with that file, without a look for another


@dataclass(frozen=True)
class Nginx:
    port: int
    pid: int
    tls_port: int | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return self.base_url + FILE_PATH

    @property
    def tls_url(self) -> str:
        return f"https://127.0.0.1:{self.tls_port}{FILE_PATH}"

    def requests(self) -> int:
        """The number of requests answered so far: the check on what clients say of themselves."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/status")
            return requests_of_status(connection.getresponse().read().decode())
        finally:
            connection.close()

    def cpu_s(self) -> float:
        return cpu_seconds(self.pid)


def config(
    port: int,
    folder: Path,
    open_files: int,
    as_root: bool,
    tls_port: int | None = None,
    upstream: str | None = None,
) -> str:
    """One worker, no access log, connections that stay open, files that stay open, or a server behind it."""
    answer = f"try_files $uri {FILE_PATH}" if upstream is None else f"proxy_pass {upstream}"
    tls = "" if tls_port is None else _TLS.format(port=tls_port, folder=folder)
    return f"""{"user root;" if as_root else ""}
daemon off;
worker_processes 1;
worker_rlimit_nofile {open_files};
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections {open_files - _SPARE_FILES}; multi_accept on; }}
http {{
  access_log off;
  sendfile off;
  tcp_nodelay on;
  keepalive_requests 1000000000;
  keepalive_timeout 3600s;
  open_file_cache max=1000;
  open_file_cache_valid 1h;
  client_body_temp_path {folder}/tmp_body;
  proxy_temp_path {folder}/tmp_proxy;
  fastcgi_temp_path {folder}/tmp_fastcgi;
  uwsgi_temp_path {folder}/tmp_uwsgi;
  scgi_temp_path {folder}/tmp_scgi;
  server {{
    listen 127.0.0.1:{port} backlog=16384;
{tls}    root {folder}/root;
    location = /status {{ stub_status; }}
    location {ANY_PATH} {{ try_files {FILE_PATH} =404; }}
    location / {{ {answer}; }}
  }}
}}
"""


_TLS = """    listen 127.0.0.1:{port} ssl http2 backlog=16384;
    ssl_certificate {folder}/cert.pem;
    ssl_certificate_key {folder}/key.pem;
    ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
"""


def certify(folder: Path) -> None:
    """A certificate for loopback that nobody has signed, for two days."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "key.pem"]
    name = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", *key, *name, "-days", "2", "-out", "cert.pem"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise RunFailedError(f"openssl made no certificate: {done.stderr.strip()[-160:]}")


def requests_of_status(text: str) -> int:
    """The third number of stub_status: requests."""
    found = re.search(r"^\s*\d+\s+\d+\s+(\d+)\s*$", text, re.MULTILINE)
    if found is None:
        raise RunFailedError("nginx's status page could not be read")
    return int(found[1])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def program() -> str | None:
    """Debian puts it where only root looks."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


@contextmanager
def nginx(
    scratch: Path,
    connections: int = 65_000,
    tls: bool = False,
    cpu: int | None = SERVER_CPU,
    upstream: str | None = None,
) -> Iterator[Nginx]:
    """Start one worker that takes so many connections, as far as files may be open; TLS has its own port.

    With `upstream`, the address of another server, that one answers.
    """
    folder = scratch.resolve() / "nginx"
    (folder / "root").mkdir(parents=True, exist_ok=True)
    (folder / "root" / FILE_PATH.lstrip("/")).write_bytes(b"x" * FILE_BYTES)
    port = free_port()
    open_files = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], connections + _SPARE_FILES)
    tls_port = free_port() if tls else None
    if tls:
        certify(folder)
    text = config(port, folder, open_files, os.geteuid() == 0, tls_port, upstream)
    (folder / "nginx.conf").write_text(text)
    path = program()
    if path is None:
        raise RunFailedError("nginx is not installed")
    with background([path, "-c", str(folder / "nginx.conf")], folder, cpu=cpu) as process:
        server = Nginx(port, process.pid, tls_port)
        for _ in range(100):
            try:
                server.requests()
                break
            except OSError:
                if process.poll() is not None:
                    raise RunFailedError(
                        f"nginx did not start: {(folder / 'server.err').read_text()[-200:]}"
                    ) from None
                time.sleep(0.05)
        yield server
