"""A real Chromium, a page that is open in it, and a network that nothing disturbs."""

import ctypes
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.programs import need, skip_or_fail

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        skip_or_fail("no chromium on the path")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Opened:
    """A page, and what it complained of or asked for."""

    def __init__(self, browser: Browser, path: Path, *, fragment: str = "", **context: Any) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page: Page = browser.new_page(**context)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(f"{path.as_uri()}#{fragment}" if fragment else path.as_uri())
        self.page.wait_for_selector("html[data-drawn]")

    def until(self, expression: str) -> None:
        """Wait until it is true. Playwright's own way to wait is one that the page's policy forbids."""
        for _ in range(200):
            if self.page.evaluate(expression):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(expression)


# A network that nothing disturbs, for browsers.
#
# Whenever a network interface of the machine comes or goes, Chromium drops requests that wait for a
# connection (net::ERR_NETWORK_CHANGED), and other tests start containers and virtual machines all the time.
# So the browser's command runs in a network namespace of its own, which has loopback alone. What listens on
# a port of the machine's loopback answers on the same port there, through a relay.
#
# The namespace has no name: it belongs to a thread, its children and its sockets, and is gone with them,
# however they end.

_CLONE_NEWNET = 0x40000000  # linux/sched.h; os.unshare() comes with Python 3.12
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Quiet:
    """A network namespace, as the one thread that lives in it."""

    thread: ThreadPoolExecutor

    def run(
        self, command: Sequence[str], timeout_s: float, cwd: Path, env: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in it, as `subprocess.run` does: a child is where the thread is that starts it."""

        def done() -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                command, capture_output=True, text=True, timeout=timeout_s, check=False, cwd=cwd, env=env
            )

        return self.thread.submit(done).result()


@contextmanager
def quiet_network(port: int | None = None) -> Iterator[Quiet]:
    """A namespace with loopback alone; there, `port` leads to the same port of the machine's own loopback."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    with ThreadPoolExecutor(max_workers=1) as thread, ExitStack() as stack:
        thread.submit(_move_out).result()
        if port is not None:
            listener = thread.submit(socket.create_server, (_LOOPBACK, port), backlog=128).result()
            stack.enter_context(_relay(listener, port))
        yield Quiet(thread)


def _move_out() -> None:
    """Give the thread that calls this a network namespace of its own."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"no network namespace: {os.strerror(number)}")
    subprocess.run([need("ip"), "link", "set", "lo", "up"], check=True)


@contextmanager
def _relay(listener: socket.socket, port: int) -> Iterator[None]:
    """Relay what connects to `listener`, by threads that are on the machine's network like their caller."""

    def accept() -> None:
        with suppress(OSError):  # it was shut down
            while True:
                threading.Thread(target=_carry, args=(listener.accept()[0], port), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    with listener:
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def _carry(browser: socket.socket, port: int) -> None:
    """Carry one connection until both sides have ended it."""
    with browser, suppress(OSError), socket.create_connection((_LOOPBACK, port)) as server:
        back = threading.Thread(target=_pump, args=(server, browser), daemon=True)
        back.start()
        _pump(browser, server)
        back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
