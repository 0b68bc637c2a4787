"""Servers on loopback: Prometheus and what the dashboard asks of it, sshd, nginx, and answers made up."""

import getpass
import json
import os
import re
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support.programs import LONGEST_S, ROOT, eventually, free_port, listens, need, wait_for

DASHBOARD = ROOT / "examples" / "grafana" / "plimsoll-replay.json"


class Prometheus:
    """A server that scrapes one address each second."""

    def __init__(self, folder: Path, scraped: int, *flags: str) -> None:
        folder.mkdir()
        target = f"static_configs: [{{targets: ['127.0.0.1:{scraped}']}}]"
        config = f"global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: replay, {target}}}]\n"
        (folder / "prometheus.yml").write_text(config)
        port = free_port()
        self._url = f"http://127.0.0.1:{port}"
        words = [need("prometheus"), f"--config.file={folder}/prometheus.yml"]
        words += [f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}", *flags]
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()

    def ask(self, query: str) -> list[float]:
        """Return the values that a query finds now; none while the server is not ready."""
        try:
            answer = requests.get(f"{self._url}/api/v1/query", params={"query": query}, timeout=LONGEST_S)
        except requests.ConnectionError:
            return []
        if answer.status_code in (503, 404):
            return []
        found = answer.json()
        assert found["status"] == "success", (query, found)
        return [float(one["value"][1]) for one in found["data"]["result"]]

    def ask_of_all(self, query: str) -> list[float]:
        """Return the most that a query has found in the last quarter of an hour."""
        return self.ask(f"max_over_time(({query})[15m:1s])")


def queries() -> dict[str, str]:
    """Every query of the dashboard, with Grafana's variables filled in."""
    panels: list[dict[str, Any]] = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return {
        f"{panel['title']} {target['refId']}": target["expr"]
        .replace("$__rate_interval", "5s")
        .replace("$instance", ".*")
        .replace("$backend", ".*")
        for panel in panels
        for target in panel["targets"]
    }


class Sshd:
    """Takes the key `key`, and is known by `known_hosts`."""

    def __init__(self, root: Path) -> None:
        server, keygen = need("sshd"), need("ssh-keygen")
        self.port = free_port()
        self.remote = f"{getpass.getuser()}@127.0.0.1:{self.port}"
        self.key, self.other_key, host_key = root / "key", root / "other", root / "host"
        self.locked_key = root / "locked"
        for path in (self.key, self.other_key, host_key, self.locked_key):
            phrase = "a passphrase" if path == self.locked_key else ""
            subprocess.run([keygen, "-q", "-t", "ed25519", "-N", phrase, "-f", str(path)], check=True)
        self.known_hosts = root / "known_hosts"
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} " + host_key.with_suffix(".pub").read_text())
        authorized = root / "authorized_keys"
        authorized.write_text(self.key.with_suffix(".pub").read_text())
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd wants it; its package makes it at boot
        options = {
            "Port": self.port,
            "ListenAddress": "127.0.0.1",
            "HostKey": host_key,
            "AuthorizedKeysFile": authorized,
            "StrictModes": "no",
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "PermitRootLogin": "prohibit-password",
            "PidFile": root / "sshd.pid",
        }
        config = root / "sshd_config"
        config.write_text("".join(f"{name} {value}\n" for name, value in options.items()))
        self.log = (root / "sshd.log").open("wb")
        self.process = subprocess.Popen(
            [server, "-D", "-e", "-f", str(config)], stdout=self.log, stderr=self.log
        )
        wait_for("sshd listens", lambda: listens(self.port))

    @property
    def access(self) -> str:
        """Its keys of a host in lab.yml."""
        return f"port: {self.port}, key: {self.key}, known_hosts: {self.known_hosts}"

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.log.close()


def receiving(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """This machine as a host over SSH that receives: its keys of a sink. `ssh` knows it meanwhile."""
    (folder / "ssh").mkdir()
    server, program = Sshd(folder / "ssh"), folder / "ssh" / "ssh"
    options = f"-i {server.key} -o UserKnownHostsFile={server.known_hosts}"
    program.write_text(f'#!/bin/sh\nexec {need("ssh")} {options} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    yield {"to": "remote", "host": "root@127.0.0.1", "port": server.port}
    server.stop()


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


# A line of examples/access.log, read without Plimsoll's parser; nginx escapes alike in both logs.
_LINE = re.compile(r'^\S+ - - \[[^]]*\] "((?:GET|HEAD) \S+ HTTP/1\.[01])" \d+ \d+ "(.*)" "(.*)"$')
Asked = tuple[str, str, str]  # request line, referer, user agent


def logged(path: Path) -> list[Asked | None]:
    """What each line of the old log asked for, by path; None where it cannot be replayed."""
    found = [_LINE.match(line) for line in path.read_text().splitlines()]
    return [(re.sub(r" http://[^/ ]+", " ", m[1]), m[2], m[3]) if m else None for m in found]


def received(path: Path) -> list[tuple[float, Asked]]:
    """Instant in seconds and request of each line of an `Nginx`'s log."""
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    return [(float(row[0]), (row[1], row[2], row[3])) for row in rows]


Answer = Callable[[socket.socket, bytes], None]


def http_reply(text: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\n{headers}\r\n".encode() + text


def saying(data: bytes) -> Answer:
    return lambda connection, request: connection.sendall(data)


@contextmanager
def serve_raw(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[tuple[int, list[bytes]]]:
    """A server that gives each connection one answer; its port, and what it was asked."""
    asked: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            try:
                connection = tls.wrap_socket(connection, server_side=True) if tls else connection
            except ssl.SSLError:
                continue
            with connection:
                request = b""
                try:
                    while b"\r\n\r\n" not in request and (piece := connection.recv(65536)):
                        request += piece
                except ssl.SSLError:
                    continue  # a client without a certificate
                asked.append(request)
                if request:
                    answer(connection, request)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], asked
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


@contextmanager
def serve_wsgi(answer: Callable[[dict[str, Any], Callable[..., Any]], list[bytes]]) -> Iterator[str]:
    """A server of a WSGI application, for tests that Locust has patched; its address."""
    from gevent.pywsgi import WSGIServer

    server = WSGIServer(("127.0.0.1", 0), answer, log=None)
    server.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.stop()


def make_pair(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a certificate that vouches for itself, and its key."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
    command = [need("openssl"), "req", "-x509", *curve, "-nodes", "-subj", f"/CN={name}", "-days", "2"]
    subprocess.run([*command, "-out", cert, "-keyout", key], check=True, capture_output=True)
    cert.chmod(0o644)
    key.chmod(0o600)
    return cert, key


Reply = tuple[int, bytes] | tuple[int, bytes, Mapping[str, str]]  # status, body, headers; a page has none
Respond = Callable[[str, str, bytes], Reply | None]


@contextmanager
def serve_http(answer: Respond, certificate: Path | None = None) -> Iterator[str]:
    """A small server, and where it is. It is asked by method, path and body; None hangs up."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            reply = answer(self.command, self.path, body)
            if reply is None:
                self.close_connection = True
                return
            self.send_response(reply[0])
            further = reply[2] if len(reply) == 3 else {"Content-Type": "text/html"}
            for header in {"Content-Length": str(len(reply[1])), **further}.items():
                self.send_header(*header)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply[1])

        do_HEAD = do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http{'s' if certificate else ''}://127.0.0.1:{server.server_port}"
        server.shutdown()


def of_files(files: Mapping[str, bytes]) -> Respond:
    """A site of these files by path, and 404 elsewhere."""

    def answer(_: str, path: str, __: bytes) -> Reply:
        body = files.get(path.partition("?")[0])
        return (404, b"") if body is None else (200, body)

    return answer
