"""The php observer on a real PHP-FPM with two workers: by FastCGI, over HTTP, and when it is full."""

import asyncio
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.observers.php import COLUMNS, PhpSettings, PhpWatch
from plimsoll.lab.observers.php_script import asked, by_fastcgi, record
from tests.support.programs import LONGEST_S, eventually, free_port, need
from tests.support.servers import Reply, serve_http

POOL = """
[global]
pid = {folder}/pid
error_log = {folder}/log
daemonize = no
[www]
listen = 127.0.0.1:{port}
user = root
group = root
pm = static
pm.max_children = 2
pm.status_path = /status
pm.status_listen = 127.0.0.1:{aside}
"""
# As in docs/observers.md.
OPCACHE = "<?php header('Content-Type: application/json'); echo json_encode(opcache_get_status(false));"
SLEEPS = "<?php while (!file_exists(__DIR__ . '/go')) { usleep(20000); clearstatcache(); } echo 'done';"


class Pool:
    """A pool of two workers. Asked at `aside`, its status page does not wait for one."""

    def __init__(self, folder: Path) -> None:
        # Debian names it by its version, outside the path of most users.
        program = need(next(iter(sorted(Path("/usr/sbin").glob("php-fpm*"))), "php-fpm"))
        self.folder, self.port, self.aside = folder, free_port(), free_port()
        (folder / "fpm.conf").write_text(POOL.format(folder=folder, port=self.port, aside=self.aside))
        (folder / "opcache.php").write_text(OPCACHE)
        (folder / "sleeps.php").write_text(SLEEPS)
        self._process = subprocess.Popen(
            [program, "-R", "-y", folder / "fpm.conf"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        assert eventually(self._answers), (folder / "log").read_text()

    def _answers(self) -> bool:
        try:
            by_fastcgi(f"127.0.0.1:{self.port}", "/status")
        except OSError:
            return False
        return True

    def settings(self, aside: bool = False, **keys: str) -> PhpSettings:
        return PhpSettings(fastcgi=f"127.0.0.1:{self.aside if aside else self.port}", **keys)

    def occupy(self, requests: int) -> list[socket.socket]:
        """Requests that are answered only when there is a file `go`."""
        found = []
        for _ in range(requests):
            found.append(socket.create_connection(("127.0.0.1", self.port)))
            found[-1].sendall(asked(str(self.folder / "sleeps.php"), ""))
        return found

    def stop(self) -> None:
        (self.folder / "go").touch()
        self._process.terminate()
        self._process.wait(LONGEST_S)


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    found = Pool(tmp_path)
    yield found
    found.stop()


Row = dict[str, float | None]


def _seen(settings: PhpSettings, enough: Callable[[Row], bool]) -> tuple[Row, list[str]]:
    """The first row that is enough, and what was said until then."""
    said = list[str]()

    async def run() -> Row:
        machine = LocalMachine()
        watch = PhpWatch(machine, settings)
        await watch.start(said.append)
        row: Row = {}
        for _ in range(LONGEST_S * 20):
            await asyncio.sleep(0.05)
            row = dict(zip((column.name for column in COLUMNS), watch.sample(), strict=True))
            if enough(row):
                break
        heard = list(said)
        await watch.stop()
        await machine.close()
        said[:] = heard
        return row

    return asyncio.run(run()), said


def test_a_pool_at_rest_by_fastcgi(pool: Pool) -> None:
    settings = pool.settings(opcache=str(pool.folder / "opcache.php"))
    row, said = _seen(settings, lambda row: row["opcache_hits_per_s"] is not None)
    assert said == []
    assert None not in row.values()
    assert row["active_count"] == 1, "the status page itself"
    assert row["accepted_per_s"]
    assert row["opcache_used_bytes"]


def test_a_full_pool_has_a_queue(pool: Pool) -> None:
    held = pool.occupy(5)
    row, _ = _seen(pool.settings(aside=True), lambda row: bool(row["queue_count"]))
    assert row["busy_percent"] == 100
    assert row["queue_count"] == 3
    (pool.folder / "go").touch()
    for one in held:
        one.close()


def test_without_a_socket_of_its_own_the_status_page_waits_as_a_visitor_does(pool: Pool) -> None:
    held = pool.occupy(2)
    row, said = _seen(pool.settings(), lambda row: (row["status_wait_ms"] or 0) > 1500)
    assert (row["status_wait_ms"] or 0) > 1500
    assert row["active_count"] is None
    assert said == []
    (pool.folder / "go").touch()
    for one in held:
        one.close()


def test_over_http_through_a_web_server(pool: Pool) -> None:
    def page(_: str, path: str, __: bytes) -> Reply:
        return 200, by_fastcgi(f"127.0.0.1:{pool.port}", path.partition("?")[0])

    with serve_http(page) as url:
        settings = PhpSettings(status=f"{url}/status?json")
        row, said = _seen(settings, lambda row: row["accepted_per_s"] is not None)
    assert said == []
    assert row["idle_count"] is not None
    assert row["opcache_hits_per_s"] is None


def test_a_script_that_is_not_there_and_a_pool_that_is_gone_say_so(pool: Pool) -> None:
    settings = pool.settings(opcache="/absent.php")
    row, said = _seen(settings, lambda row: row["accepted_per_s"] is not None)
    assert "/absent.php: status 404" in said[0]
    assert row["opcache_hits_per_s"] is None
    closed = PhpSettings(fastcgi=f"127.0.0.1:{free_port()}")
    _, said = _seen(closed, lambda row: row["status_wait_ms"] is not None)
    assert "refused" in said[0]


def test_what_answers_no_fastcgi_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" + record(9, b""))

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises((ValueError, OSError)):
            by_fastcgi(f"127.0.0.1:{server.getsockname()[1]}", "/status")
