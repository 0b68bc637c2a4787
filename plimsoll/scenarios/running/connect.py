"""Opens connections: timed, and on request to a clone under the site's name."""

import time
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter


class ConnectTimer:
    """The time that the last request spent on a new connection; 0 if it reused one."""

    connect_us = 0

    def add(self, started_ns: int) -> None:
        """Add the time since `started_ns` (monotonic clock)."""
        self.connect_us += (time.monotonic_ns() - started_ns) // 1000


class TimedAdapter(HTTPAdapter):
    """An adapter whose connections report to `timer` how long they took to open, name and TLS included.

    Up to `connections` are kept.
    """

    def __init__(self, timer: ConnectTimer, connect_to: str | None, connections: int = 2) -> None:
        self._timer, self._connect_to = timer, connect_to
        super().__init__(pool_connections=2, pool_maxsize=connections, max_retries=0)

    def init_poolmanager(self, *args: Any, **keywords: Any) -> None:
        """Make the manager with pools of timed connections."""
        super().init_poolmanager(*args, **keywords)
        timer = self._timer

        class Plain(urllib3.connection.HTTPConnection):
            def connect(self) -> None:
                started_ns = time.monotonic_ns()
                super().connect()
                timer.add(started_ns)

        class Secure(urllib3.connection.HTTPSConnection):
            def connect(self) -> None:
                started_ns = time.monotonic_ns()
                super().connect()
                timer.add(started_ns)

        class PlainPool(urllib3.HTTPConnectionPool):
            ConnectionCls = Plain

        class SecurePool(urllib3.HTTPSConnectionPool):
            ConnectionCls = Secure

        self.poolmanager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}

    def build_connection_pool_key_attributes(
        self, request: requests.PreparedRequest, verify: Any, cert: Any = None
    ) -> Any:
        """Connect to `connect_to` if set; the site's name stays in Host, SNI and the certificate check."""
        parameters: Any = super().build_connection_pool_key_attributes(request, verify, cert)
        host, pool = parameters
        if self._connect_to:
            name = host["host"]
            address, _, port = self._connect_to.rpartition(":")
            host |= {"host": address.strip("[]"), "port": int(port)}
            request.headers["Host"] = urlsplit(request.url or "").netloc
            if host["scheme"] == "https":
                pool |= {"server_hostname": name, "assert_hostname": name}
        return host, pool
