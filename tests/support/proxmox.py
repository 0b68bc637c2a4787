"""A server that speaks the documented API of Proxmox VE over HTTPS, with faults that a test switches on.

It refuses every request that does not keep to the description of the API (tests/support/proxmox_api.py).
It has guests, templates, tasks, locks and snapshots as state; nothing in it takes time: a task ends when its
status was asked for so many times.
"""

import contextlib
import datetime
import hashlib
import ipaddress
import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from plimsoll.lab.clones.proxmox import GuestName, Proxmox, ProxmoxSettings
from plimsoll.lab.proxmox import ProxmoxApi, connect
from tests.support.proxmox_api import problems

# Virtual machines and containers, and how the API distinguishes them.


@dataclass
class Vm:
    """A virtual machine or a container, or the template of one. `kind` is `qemu` or `lxc`."""

    node: str
    config: dict[str, Any]
    running: bool = False
    snapshots: dict[str, dict[str, Any]] = field(default_factory=dict)
    address: str | None = "192.0.2.77"
    kind: str = "qemu"

    @property
    def name_key(self) -> str:
        """The key of its configuration, and of a request to clone, that has its name."""
        return "name" if self.kind == "qemu" else "hostname"

    @property
    def called(self) -> str:
        """How messages call it."""
        return "VM" if self.kind == "qemu" else "CT"

    def task(self, what: str) -> str:
        """The type of a task on it."""
        return f"{'qm' if self.kind == 'qemu' else 'vz'}{what}"

    def interfaces(self) -> list[dict[str, Any]]:
        """Its interfaces, as agent and node report them."""
        rows = [] if self.address is None else [_address(self.address, 24)]
        return [
            {"name": "lo", "ip-addresses": [_address("127.0.0.1", 8)]},
            {"name": "eth0", "ip-addresses": rows},
        ]


def config_file(node: str, kind: str, vmid: int) -> str:
    """Where a node keeps a configuration."""
    return f"nodes/{node}/{'qemu-server' if kind == 'qemu' else 'lxc'}/{vmid}.conf"


def copied(vm: Vm, number: int, params: dict[str, str]) -> dict[str, Any]:
    """The volumes of a clone of `vm`: each on the storage that `params` name, with the clone's number."""
    storage = params.get("storage")
    made = {}
    for place, slot in enumerate(slot for slot in vm.config if slot.startswith(("scsi", "rootfs", "mp"))):
        volume, _, options = str(vm.config[slot]).partition(",")
        prefix = "vm" if vm.kind == "qemu" else "subvol"
        made[slot] = f"{storage or volume.split(':')[0]}:{prefix}-{number}-disk-{place},{options}"
    return made


def _address(text: str, prefix: int) -> dict[str, Any]:
    return {"ip-address": text, "ip-address-type": "ipv4", "prefix": prefix}


# The server, and its state.

TOKEN_ID, SECRET = "lab@pve!plimsoll", "0f8fad5b-d9cb-469f-a165-70867728950e"
ENVIRONMENT = {"PLIMSOLL_PROXMOX_TOKEN_ID": TOKEN_ID, "PLIMSOLL_PROXMOX_TOKEN_SECRET": SECRET}
TEMPLATES = {"vm": 900, "container": 901}
TEMPLATE, CONTAINER = TEMPLATES.values()
CLONE_NAME = "plimsoll-bench--hdd"


@dataclass
class Job:
    """A task."""

    upid: str
    left: int  # how often its status is asked for before it ends
    done: Callable[[], str]
    undo: Callable[[], None] = lambda: None
    exit_status: str | None = None
    log: list[str] = field(default_factory=list)


class ProxmoxServer:
    """Its state, and what of it goes wrong."""

    def __init__(self, folder: Path) -> None:
        self.vms = {
            TEMPLATE: Vm(
                "pve1",
                {
                    "name": "site",
                    "template": 1,
                    "scsi0": "local:base-900-disk-0,iothread=1,size=32G",
                    "protection": 1,
                },
            ),
            CONTAINER: Vm(
                "pve1",
                {
                    "hostname": "site",
                    "template": 1,
                    "rootfs": "local:basevol-901-disk-0,size=8G",
                    "mp0": "local:basevol-901-disk-1,mp=/var/lib/mysql,mountoptions=noatime,size=32G",
                    "protection": 1,
                },
                kind="lxc",
            ),
        }
        self.storages: list[dict[str, Any]] = []
        self.jobs: dict[str, Job] = {}
        self.asked: list[str] = []
        self.params: list[dict[str, str]] = []
        self.polls = 1
        self.offline: set[str] = set()
        self.agent_polls = 0  # how often the guest agent is asked in vain
        self.lock_polls: dict[int, int] = {}  # how many requests a machine's lock outlives
        self._faults: list[list[Any]] = []
        self._task_faults: list[tuple[str, str]] = []
        self._started = 0
        self.released = threading.Event()
        self.ca, self.fingerprint = certificate(folder)
        server = ThreadingHTTPServer(
            ("127.0.0.1", 0), handler(self.answer, f"PVEAPIToken={TOKEN_ID}={SECRET}", self.released)
        )
        server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.ca, folder / "key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        self._server = server
        self.api = f"127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """End it."""
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def fail(
        self,
        match: str,
        status: int,
        reason: str,
        times: int = 1,
        errors: dict[str, str] | None = None,
        after: Callable[[], None] | None = None,
    ) -> None:
        """Refuse the next `times` requests that `match` (METHOD /path) finds, and do `after` each time."""
        self._faults.append([re.compile(match), HttpError(status, reason, errors), times, after])

    def silent(self, match: str, times: int = 1) -> None:
        """Never answer the next `times` requests that `match` finds, though what they ask for is done."""
        self._faults.append([re.compile(match), "silent", times, None])

    def broken(self, match: str, times: int = 1) -> None:
        """Break the connection of the next `times` requests that `match` finds."""
        self._faults.append([re.compile(match), "broken", times, None])

    def fail_task(self, kind: str, exit_status: str) -> None:
        """Let the next task of this kind end so, having done nothing."""
        self._task_faults.append((kind, exit_status))

    def named(self, name: str) -> list[int]:
        """Numbers of the machines that are called so."""
        return [vmid for vmid, vm in self.vms.items() if vm.config.get(vm.name_key) == name]

    def answer(self, method: str, path: str, params: dict[str, str]) -> Any:
        """The `data` of the answer, or HttpError; "silent" or "broken" where none is sent."""
        line = f"{method} {path}"
        self.asked.append(line)
        self.params.append(params)
        if wrong := problems(method, path, params):
            raise HttpError(400, "Parameter verification failed.", wrong)
        silent = False
        for fault in self._faults:
            if fault[2] and fault[0].search(line):
                fault[2] -= 1
                if fault[3]:
                    fault[3]()
                if isinstance(fault[1], HttpError):
                    raise fault[1]
                if fault[1] == "broken":
                    return "broken"
                silent = True
        data = self._route(method, path, params)
        return "silent" if silent else data

    def _route(self, method: str, path: str, params: dict[str, str]) -> Any:
        if path == "/cluster/nextid":
            return self._next_id(params)
        if path == "/cluster/resources":
            return [self._row(vmid, vm) | {"type": vm.kind, "node": vm.node} for vmid, vm in self.vms.items()]
        if path == "/storage":
            return self.storages
        found = re.fullmatch(r"/nodes/([^/]+)/(qemu|lxc|tasks)(?:/([^/]+))?(/.*)?", path)
        if not found:
            raise HttpError(501, f"Method '{method} {path}' not implemented")
        node, kind, name, rest = found[1], found[2], found[3], found[4] or ""
        if node in self.offline:
            raise HttpError(595, "No route to host")
        if node not in {vm.node for vm in self.vms.values()} | {"pve2"}:
            raise HttpError(500, f"hostname lookup '{node}' failed - failed to get address info")
        if kind == "tasks":
            return self._tasks(method, node, name, rest, params)
        if name is None:
            there = [(vmid, vm) for vmid, vm in self.vms.items() if (vm.node, vm.kind) == (node, kind)]
            return [self._row(vmid, vm) for vmid, vm in there]
        return self._vm(method, (node, kind, int(name)), rest, params)

    def _row(self, vmid: int, vm: Vm) -> dict[str, Any]:
        name = vm.config.get(vm.name_key, f"VM {vmid}")
        status = "running" if vm.running else "stopped"
        return {"vmid": vmid, "name": name, "status": status, "template": vm.config.get("template", 0)}

    def _next_id(self, params: dict[str, str]) -> str:
        if "vmid" in params:
            if int(params["vmid"]) in self.vms:
                errors = {"vmid": f"VM {params['vmid']} already exists"}
                raise HttpError(400, "Parameter verification failed.", errors)
            return params["vmid"]
        return str(next(n for n in range(100, 1000) if n not in self.vms))

    def _tasks(self, method: str, node: str, upid: str | None, rest: str, params: dict[str, str]) -> Any:
        if upid is None:
            jobs = [job for job in self.jobs.values() if job.exit_status is None]
            return [
                {"upid": job.upid, "node": node, "user": "lab@pve", "tokenid": "plimsoll"} for job in jobs
            ]
        job = self.jobs.get(upid)
        if job is None:
            raise HttpError(400, "Parameter verification failed.", {"upid": "no such task"})
        if method == "DELETE":
            if job.exit_status is None:
                job.undo()
                job.exit_status = "unexpected status"
            return None
        if rest == "/log":
            return [{"n": i + 1, "t": line} for i, line in enumerate(job.log)] or [
                {"n": 1, "t": "no content"}
            ]
        if job.exit_status is None:
            job.left -= 1
            if job.left <= 0:
                try:
                    job.exit_status = job.done()
                except HttpError as refusal:
                    job.undo()
                    job.exit_status = refusal.reason
                job.log.append("TASK OK" if job.exit_status == "OK" else f"TASK ERROR: {job.exit_status}")
        if job.exit_status is None:
            return {"upid": upid, "node": node, "status": "running"}
        return {"upid": upid, "node": node, "status": "stopped", "exitstatus": job.exit_status}

    def _task(
        self,
        kind: str,
        vmid: int,
        node: str,
        done: Callable[[], None],
        undo: Callable[[], None] = lambda: None,
    ) -> str:
        self._started += 1
        upid = f"UPID:{node}:{self._started:08X}:0001E240:66A1B2C3:{kind}:{vmid}:{TOKEN_ID}:"
        exit_status = next((status for k, status in self._task_faults if k == kind), None)
        if exit_status is not None:
            self._task_faults.remove((kind, exit_status))

        def end() -> str:
            if exit_status is not None and not exit_status.startswith("WARNINGS"):
                undo()
                return exit_status
            done()
            return exit_status or "OK"

        self.jobs[upid] = Job(upid, self.polls, end, undo, log=[f"starting {kind} of {vmid}"])
        return upid

    def _vm(self, method: str, which: tuple[str, str, int], rest: str, params: dict[str, str]) -> Any:
        node, kind, vmid = which
        vm = self.vms.get(vmid)
        if vm is None or (vm.node, vm.kind) != (node, kind):
            raise HttpError(500, f"Configuration file '{config_file(*which)}' does not exist")
        if (method, rest) == ("GET", "/config"):
            text = json.dumps(vm.config, sort_keys=True)
            return vm.config | {"digest": hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()}
        if (method, rest) == ("GET", "/agent/network-get-interfaces"):
            return self._agent(vm)
        if (method, rest) == ("GET", "/interfaces"):
            return vm.interfaces() if vm.running else None
        lock = vm.config.get("lock")
        if lock:
            self.lock_polls[vmid] = self.lock_polls.get(vmid, 0) - 1
            if self.lock_polls[vmid] == 0:
                del vm.config["lock"]
            raise HttpError(500, f"{vm.called} is locked ({lock})")
        if method == "DELETE" and not rest:
            return self._destroy(vmid, vm, params)
        change = {
            ("PUT", "/config"): self._configure,
            ("POST", "/clone"): self._clone,
            ("POST", "/snapshot"): self._snapshot,
            ("POST", "/status/start"): self._start,
            ("POST", "/status/stop"): self._halt,
            ("POST", "/status/shutdown"): self._halt,
        }.get((method, rest))
        if change:
            return change(vmid, vm, params)
        if found := re.fullmatch(r"/snapshot/(\w+)/rollback", rest):
            return self._roll_back(vmid, vm, found[1])
        raise HttpError(501, f"Method '{method} /nodes/{node}/{kind}/{vmid}{rest}' not implemented")

    def _agent(self, vm: Vm) -> Any:
        if not vm.running or self.agent_polls > 0:
            self.agent_polls -= 1
            raise HttpError(500, "QEMU guest agent is not running")
        return {"result": vm.interfaces()}

    def _configure(self, vmid: int, vm: Vm, params: dict[str, str]) -> None:
        now = self._vm("GET", (vm.node, vm.kind, vmid), "/config", {})["digest"]
        if params.pop("digest", now) != now:
            raise HttpError(500, "detected modified configuration - file changed by other user? Try again.")
        vm.config |= {key: int(value) if value.isdigit() else value for key, value in params.items()}

    def _clone(self, vmid: int, vm: Vm, params: dict[str, str]) -> str:
        full = params.get("full", "0" if vm.config.get("template") else "1") == "1"
        if "storage" in params and not full:
            raise HttpError(500, "parameter 'storage' not allowed for linked clones")
        new = int(params["newid"])
        if new in self.vms:
            raise HttpError(500, f"unable to create {vm.called} {new}: config file already exists")
        for slot, line in vm.config.items():
            if slot.startswith("mp") and str(line).startswith("/"):
                raise HttpError(500, f"unable to clone mountpoint '{slot}' (type bind)")
        if vm.kind == "lxc" and vm.running and full:
            raise HttpError(500, "Full clone of a running container is only possible from a snapshot")
        given = {key: params[key] for key in (vm.name_key, "description") if key in params}
        kept = {key: value for key, value in vm.config.items() if key != "template"} | given
        # A container has all but its volumes at once, a virtual machine nothing but the lock.
        early = kept if vm.kind == "lxc" else {}
        made = Vm(
            params.get("target", vm.node),
            early | {"lock": "create" if early else "clone"},
            kind=vm.kind,
        )
        self.vms[new] = made
        self.lock_polls[new] = 1_000_000

        def done() -> None:
            made.config = kept | copied(vm, new, params)

        return self._task(vm.task("clone"), vmid, vm.node, done, lambda: self._forget(new))

    def _forget(self, vmid: int) -> None:
        self.vms.pop(vmid, None)

    def _snapshot(self, vmid: int, vm: Vm, params: dict[str, str]) -> str:
        return self._task(
            vm.task("snapshot"),
            vmid,
            vm.node,
            lambda: vm.snapshots.update({params["snapname"]: dict(vm.config)}),
        )

    def _roll_back(self, vmid: int, vm: Vm, name: str) -> str:
        if name not in vm.snapshots:
            raise HttpError(500, f"snapshot '{name}' does not exist")
        return self._task(vm.task("rollback"), vmid, vm.node, lambda: vm.config.update(vm.snapshots[name]))

    def _start(self, vmid: int, vm: Vm, params: dict[str, str]) -> str:
        def done() -> None:
            if vm.running:
                raise HttpError(500, f"{vm.called} {vmid} already running")
            vm.running = True

        return self._task(vm.task("start"), vmid, vm.node, done)

    def _halt(self, vmid: int, vm: Vm, params: dict[str, str]) -> str:
        if vm.kind == "lxc" and not vm.running:
            raise HttpError(500, f"CT {vmid} not running")
        return self._task(vm.task("stop"), vmid, vm.node, lambda: setattr(vm, "running", False))

    def _destroy(self, vmid: int, vm: Vm, params: dict[str, str]) -> str:
        if vm.running:
            raise HttpError(500, f"{vm.called} {vmid} is running - destroy failed")
        if vm.config.get("protection"):
            raise HttpError(500, f"can't remove {vm.called} {vmid} - protection mode enabled")
        return self._task(vm.task("destroy"), vmid, vm.node, lambda: self._forget(vmid))


@contextlib.contextmanager
def proxmox_server(folder: Path) -> Iterator[ProxmoxServer]:
    """A server until the block ends."""
    server = ProxmoxServer(folder)
    try:
        yield server
    finally:
        server.close()


def proxmox_clone(
    server: ProxmoxServer, guest: GuestName = "vm", patience_s: float = 30, **keys: Any
) -> tuple[Proxmox, ProxmoxApi]:
    """The driver's clone of one of the server's templates, and the API that it asks."""
    given = {"driver": "proxmox", "guest": guest, "api": server.api, "ca_file": server.ca, "node": "pve1"}
    rest = {"template": TEMPLATES[guest], "storage": "hdd-zfs"}
    settings = ProxmoxSettings.model_validate(given | rest | keys)
    connection = connect(settings, ENVIRONMENT)
    api = ProxmoxApi(connection, pause_s=0.005, patience_s=patience_s, lock_s=patience_s)
    return Proxmox(settings, CLONE_NAME, api), api


# HTTPS: a certificate of its own, and how answers look.


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
                refused = {"data": None} | ({"errors": refusal.errors} if refusal.errors else {})
                self._send(refusal.status, refusal.reason, b"" if empty else json.dumps(refused).encode())
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
