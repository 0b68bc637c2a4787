"""The HTTPS side of the Proxmox server: a certificate of its own, and how answers look."""

import datetime
import ipaddress
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class HttpError(Exception):
    """An answer that is not 200: its reason stands in the status line, as Proxmox does it."""

    def __init__(self, status: int, reason: str, errors: dict[str, str] | None = None) -> None:
        self.status, self.reason, self.errors = status, reason, errors


def handler(
    answer: Callable[[str, str, dict[str, str]], Any], authorization: str, released: threading.Event
) -> type[BaseHTTPRequestHandler]:
    """Speaks HTTP for a server; what it holds back is let go with `released`."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30
        disable_nagle_algorithm = True

        def log_message(self, *_: Any) -> None:
            pass

        def _any(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            params = dict(parse_qsl(body) + parse_qsl(parts.query))
            try:
                if self.headers.get("Authorization") != authorization:
                    raise HttpError(401, "invalid token value!")
                path = unquote(parts.path).removeprefix("/api2/json")
                with lock:
                    data = answer(self.command, path, params)
            except HttpError as refusal:
                empty = refusal.status in (401, 595)
                said = {"data": None} | ({"errors": refusal.errors} if refusal.errors else {})
                self._send(refusal.status, refusal.reason, b"" if empty else json.dumps(said).encode())
                return
            if data == "silent":
                released.wait(20)
            if data in ("silent", "broken"):
                self.close_connection = True
                return
            self._send(200, "OK", json.dumps({"data": data}).encode())

        def _send(self, status: int, reason: str, body: bytes) -> None:
            self.send_response(status, reason)
            self.send_header("Content-Type", "application/json;charset=UTF-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = _any  # noqa: N815

    return Handler


def certificate(folder: Path) -> tuple[Path, str]:
    """A certificate of its own for 127.0.0.1: the file that proves it, and its fingerprint."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pve1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "ca.pem"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return pem, made.fingerprint(hashes.SHA256()).hex(":").upper()
