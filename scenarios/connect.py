"""How connections are opened: timed, and to a clone under the site's name where wanted."""

import time
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter


class Opened:
    """What the last request spent on a new connection; 0 where it reused one."""

    connect_us = 0

    def took(self, started_ns: int) -> None:
        """Note a connection that was opened since `started_ns` (monotonic)."""
        self.connect_us += (time.monotonic_ns() - started_ns) // 1000


class TimedAdapter(HTTPAdapter):
    """An adapter whose connections tell `opened` how long they took, name and TLS included."""

    def __init__(self, opened: Opened, connect_to: str | None) -> None:
        self._opened, self._connect_to = opened, connect_to
        super().__init__(pool_connections=2, pool_maxsize=2, max_retries=0)

    def init_poolmanager(self, *args: Any, **keywords: Any) -> None:
        """Make the manager with pools of timed connections."""
        super().init_poolmanager(*args, **keywords)
        opened = self._opened

        class Plain(urllib3.connection.HTTPConnection):
            def connect(self) -> None:
                started_ns = time.monotonic_ns()
                super().connect()
                opened.took(started_ns)

        class Secure(urllib3.connection.HTTPSConnection):
            def connect(self) -> None:
                started_ns = time.monotonic_ns()
                super().connect()
                opened.took(started_ns)

        class PlainPool(urllib3.HTTPConnectionPool):
            ConnectionCls = Plain

        class SecurePool(urllib3.HTTPSConnectionPool):
            ConnectionCls = Secure

        self.poolmanager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}

    def build_connection_pool_key_attributes(
        self, request: requests.PreparedRequest, verify: Any, cert: Any = None
    ) -> Any:
        """Connect elsewhere where wanted; the site's name stays in Host, SNI and the certificate check."""
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
