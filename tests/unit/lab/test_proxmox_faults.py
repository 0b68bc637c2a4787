"""What goes wrong on Proxmox: what is tried again, what is not, and the sentences that are left."""

import asyncio
import select
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.lab.errors import LabError
from plimsoll.lab.proxmox import ApiSettings, ProxmoxApi, connect
from plimsoll.lab.proxmox.api import guest_address, task
from plimsoll.lab.proxmox.connection import token
from plimsoll.lab.steps.step import Call
from tests.support.proxmox import (
    ENVIRONMENT,
    SECRET,
    TEMPLATE,
    TOKEN_ID,
    ProxmoxServer,
    Vm,
    proxmox_server,
)

NEXT = Call("choose a free number", "GET", "/cluster/nextid")
CLONE = Call(
    "clone it",
    "POST",
    f"/nodes/pve1/qemu/{TEMPLATE}/clone",
    (("newid", "105"), ("name", "plimsoll-a--b"), ("full", "1"), ("storage", "hdd")),
    task_timeout_s=60,
)
START = Call("start it", "POST", "/nodes/pve1/qemu/110/status/start", task_timeout_s=60)
START_CONTAINER = Call("start it", "POST", "/nodes/pve1/lxc/120/status/start", task_timeout_s=60)
REMOVE = Call("remove it", "DELETE", "/nodes/pve1/qemu/110", task_timeout_s=60, may_be_gone=True)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ProxmoxServer]:
    with proxmox_server(tmp_path) as made:
        made.vms[110] = Vm("pve1", {"name": "plimsoll-a--b"})
        made.vms[120] = Vm("pve1", {"hostname": "plimsoll-a--b"}, kind="lxc")
        yield made


def api_of(
    server: ProxmoxServer, environment: dict[str, str] = ENVIRONMENT, patience_s: float = 30, **keys: Any
) -> ProxmoxApi:
    given = {"api": server.api, "ca_file": server.ca, **keys}
    connection = connect(ApiSettings.model_validate(given), environment)
    return ProxmoxApi(connection, pause_s=0.005, patience_s=patience_s, lock_s=patience_s)


def ask(server: ProxmoxServer, call: Call, **keys: Any) -> Any:
    return asyncio.run(api_of(server, **keys).call(call))


Fault = Callable[[ProxmoxServer], object]

PASSES: list[tuple[str, Call, Fault]] = [
    ("a node that is away for a moment", START, lambda s: s.fail("start$", 595, "No route to host", 3)),
    (
        "a node that is away while its task runs",
        START,
        lambda s: s.fail("status$", 595, "Connection timed out", 3),
    ),
    ("an answer to a question that broke off", NEXT, lambda s: s.broken("nextid", 2)),
    ("a question that nobody answered in time", NEXT, lambda s: s.fail("nextid", 596, "Broken pipe", 2)),
    ("a machine that is locked for a moment", START, lambda s: lock(s, 110, "snapshot", 4)),
    ("a container that is", START_CONTAINER, lambda s: lock(s, 120, "backup", 3)),
    *(
        (
            f"{verb} of a container that is stopped already",
            Call(verb, "POST", f"/nodes/pve1/lxc/120/status/{verb}", task_timeout_s=9),
            lambda s: None,
        )
        for verb in ("stop", "shutdown")
    ),
    (
        "a lock file that somebody holds",
        START,
        lambda s: s.fail(
            "start$", 500, "can't lock file '/var/lock/qemu-server/lock-110.conf' - got timeout", 3
        ),
    ),
    (
        "a task that met a lock",
        START,
        lambda s: s.fail_task(
            "qmstart", "can't lock file '/var/lock/qemu-server/lock-110.conf' - got timeout"
        ),
    ),
    ("a task with warnings", START, lambda s: s.fail_task("qmstart", "WARNINGS: 2")),
    ("a machine that is gone already", REMOVE, lambda s: s.vms.pop(110)),
    ("a clone that lasts far longer than a request", CLONE, lambda s: setattr(s, "polls", 40)),
]


def lock(server: ProxmoxServer, vmid: int, what: str, polls: int) -> None:
    server.vms[vmid].config["lock"] = what
    server.lock_polls[vmid] = polls


@pytest.mark.parametrize(("call", "fault"), [row[1:] for row in PASSES], ids=[row[0] for row in PASSES])
def test_what_passes_is_waited_out(server: ProxmoxServer, call: Call, fault: Fault) -> None:
    fault(server)
    ask(server, call)


FINAL: list[tuple[str, Call, Fault, str]] = [
    (
        "the token is wrong",
        NEXT,
        lambda s: s.fail("nextid", 401, "no such token 'plimsoll' for user 'lab@pve'", 99),
        "the API token is not accepted .no such token 'plimsoll' for user 'lab@pve'.: is it complete",
    ),
    (
        "the token may not",
        CLONE,
        lambda s: s.fail("clone$", 403, "Permission check failed (/vms/900, VM.Clone)", 99),
        r"may not do this \(Permission check failed \(/vms/900, VM.Clone\)\): grant it the privilege there",
    ),
    (
        "the node stays away",
        START,
        lambda s: s.offline.add("pve1"),
        r"the API host cannot reach the node \(No route to host\): is it on",
    ),
    (
        "the lock stays",
        START,
        lambda s: lock(s, 110, "backup", 1_000_000),
        r"VM is locked \(backup\): wait for the task that holds the lock, .* qm unlock",
    ),
    (
        "the lock of a container stays",
        START_CONTAINER,
        lambda s: lock(s, 120, "backup", 1_000_000),
        r"CT is locked \(backup\): .*pct unlock VMID for a container",
    ),
    (
        "the server refuses what it is asked",
        CLONE,
        lambda s: s.fail("clone$", 500, "storage 'hdd' is not available on node 'pve1'", 99),
        "clone: storage 'hdd' is not available on node 'pve1'",
    ),
    (
        "a parameter is wrong",
        CLONE,
        lambda s: s.fail("clone$", 400, "Parameter verification failed.", 9, {"name": "invalid format"}),
        "Parameter verification failed.; name: invalid format",
    ),
    (
        "the task fails",
        CLONE,
        lambda s: s.fail_task("qmclone", "clone failed: no space left on device"),
        r"clone it: the task failed: clone failed: no space left on device \(its log ends: "
        r"starting qmclone of 900 \| TASK ERROR: clone failed",
    ),
    (
        "the storage has no snapshots",
        Call(
            "keep it", "POST", "/nodes/pve1/qemu/110/snapshot", (("snapname", "pristine"),), task_timeout_s=9
        ),
        lambda s: s.fail_task("qmsnapshot", "snapshot feature is not available"),
        "this storage has no snapshots: set restore: clone",
    ),
    (
        "the machine does not exist",
        Call("start it", "POST", "/nodes/pve1/qemu/111/status/start"),
        lambda s: None,
        "qemu-server/111.conf' does not exist: are node and number right",
    ),
    *(
        (
            f"the container to {verb} does not exist",
            Call(verb, "POST", f"/nodes/pve1/lxc/121/status/{verb}"),
            lambda s: None,
            r"lxc/121\.conf' does not exist",
        )
        for verb in ("stop", "shutdown")
    ),
    (
        "control characters in a reason",
        START,
        lambda s: s.fail("start$", 500, "bad \x1b[2J\x07 thing", 1),
        r"start: bad \[2J thing$",
    ),
]


@pytest.mark.parametrize(
    ("call", "fault", "message"), [row[1:] for row in FINAL], ids=[row[0] for row in FINAL]
)
def test_what_does_not_pass_is_a_sentence(
    server: ProxmoxServer, call: Call, fault: Fault, message: str
) -> None:
    fault(server)
    with pytest.raises(LabError, match=message) as raised:
        ask(server, call, patience_s=0.1)
    assert "\n" not in str(raised.value)
    assert SECRET not in str(raised.value)


def test_a_wrong_secret_is_refused_by_the_server_itself_and_never_shown(server: ProxmoxServer) -> None:
    wrong = ENVIRONMENT | {"PLIMSOLL_PROXMOX_TOKEN_SECRET": "11111111-2222-3333-4444-555555555555"}
    with pytest.raises(LabError, match=r"not accepted \(invalid token value!\)") as raised:
        asyncio.run(api_of(server, wrong).call(NEXT))
    assert "55555555" not in str(raised.value)


def test_a_request_that_may_have_been_carried_out_is_not_made_twice(server: ProxmoxServer) -> None:
    server.silent("clone$")
    with pytest.raises(LabError, match=r"no answer within 0.2 s: raise request_timeout_s"):
        ask(server, CLONE, request_timeout_s=0.2)
    assert sum(line.endswith("/clone") for line in server.asked) == 1
    server.broken("clone$")
    with pytest.raises(LabError, match="the connection broke"):
        ask(server, CLONE)
    assert sum(line.endswith("/clone") for line in server.asked) == 2


def test_another_number_is_taken_where_somebody_was_faster(server: ProxmoxServer) -> None:
    def somebody() -> None:
        server.vms[100] = Vm("pve1", {"name": "somebodys"})

    async def run() -> Any:
        api = api_of(server)
        number = await api.call(NEXT)
        assert number == "100"
        params = (("newid", number), *CLONE.params[1:])
        taken = "unable to create VM 100: config file already exists"
        server.fail("clone$", 500, taken, after=somebody)
        return await api.call(Call("clone", "POST", CLONE.path, params, task_timeout_s=60))

    assert asyncio.run(run())["newid"] == "101"
    assert server.vms[100].config["name"] == "somebodys"


def test_another_number_is_taken_where_the_task_finds_it_taken(server: ProxmoxServer) -> None:
    server.fail_task("qmclone", "unable to create VM 105: config file already exists")
    assert ask(server, CLONE)["newid"] == "100"
    assert 105 not in server.vms


def test_numbers_come_from_the_range_and_not_from_beyond_it(server: ProxmoxServer) -> None:
    server.vms[300] = Vm("pve1", {})
    numbers = Call("take", "GET", "/cluster/nextid", (("vmid", "300-302"),))
    server.fail("nextid", 400, "Parameter verification failed.", 1, {"vmid": "VM 301 already exists"})
    assert ask(server, numbers) == "302"
    server.vms |= {301: Vm("pve1", {}), 302: Vm("pve1", {})}
    with pytest.raises(LabError, match="no number from 300 to 302 is free: remove guests, or widen"):
        ask(server, numbers)


def test_a_task_that_takes_too_long_is_stopped_and_its_clone_removed(server: ProxmoxServer) -> None:
    server.polls = 1_000_000
    slow = Call("clone it", "POST", CLONE.path, CLONE.params, task_timeout_s=0.1)
    with pytest.raises(LabError, match=r"not done after 0.1 s, so its task was stopped: .* \(UPID:pve1:"):
        ask(server, slow)
    assert 105 not in server.vms
    assert any(line.startswith("DELETE /nodes/pve1/tasks/UPID:") for line in server.asked)


def test_a_task_is_stopped_when_the_lab_is(server: ProxmoxServer) -> None:
    server.polls = 1_000_000

    async def run() -> None:
        doing = asyncio.create_task(api_of(server).call(CLONE))
        while not any("/status" in line for line in list(server.asked)):
            await asyncio.sleep(0.005)
        doing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await doing

    asyncio.run(run())
    assert 105 not in server.vms


def test_nobody_listens(server: ProxmoxServer) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        api = f"127.0.0.1:{probe.getsockname()[1]}"
        said = r"cannot be reached \(Connection refused\): is pveproxy running there, is the port right"
        with pytest.raises(LabError, match=said):
            ask(server, NEXT, api=api, patience_s=0.1)


def test_somebody_listens_who_speaks_no_https(server: ProxmoxServer) -> None:
    class Plain(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.request.recv(1000)
            self.wfile.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Plain) as other:
        threading.Thread(target=other.serve_forever, args=(0.05,), daemon=True).start()
        with pytest.raises(LabError, match="does not speak HTTPS: are host and port right"):
            ask(server, NEXT, api=f"127.0.0.1:{other.server_address[1]}")
        other.shutdown()


def test_its_certificate_is_proven_by_fingerprint_or_authority_or_refused(server: ProxmoxServer) -> None:
    assert ask(server, NEXT, ca_file=None, fingerprint=server.fingerprint) == "100"
    other = ":".join(["AB"] * 32)
    with pytest.raises(LabError, match=f"it is {server.fingerprint}.: was it renewed"):
        ask(server, NEXT, ca_file=None, fingerprint=other)
    with pytest.raises(
        LabError, match=r"its certificate cannot be verified \(self-signed certificate\): give ca_file"
    ):
        ask(server, NEXT, ca_file=None)
    asked = len(server.asked)
    with pytest.raises(LabError, match=r"ca_file: /none.pem cannot be read"):
        ask(server, NEXT, ca_file=Path("/none.pem"))
    assert len(server.asked) == asked


def test_its_fingerprint_is_looked_at_through_a_proxy_too(
    server: ProxmoxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Tunnel(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            line = self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            host, port = line.split()[1].decode().split(":")
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            with socket.create_connection((host, int(port))) as far:
                ends = [self.connection, far]
                while ready := select.select(ends, [], [], 5)[0]:
                    for end in ready:
                        data = end.recv(65536)
                        if not data:
                            return
                        ends[1 - ends.index(end)].sendall(data)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Tunnel) as proxy:
        proxy.daemon_threads = True
        threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True).start()
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.server_address[1]}")
        monkeypatch.setenv("NO_PROXY", "")
        assert ask(server, NEXT, ca_file=None, fingerprint=server.fingerprint) == "100"
        asked = len(server.asked)
        with pytest.raises(LabError, match="its certificate does not match fingerprint"):
            ask(server, NEXT, ca_file=None, fingerprint=":".join(["AB"] * 32))
        assert len(server.asked) == asked
        proxy.shutdown()


def test_what_answers_is_no_proxmox(server: ProxmoxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for answer in ("<html>", '["data"]', '{"x": 1}'):
        monkeypatch.setattr("tests.support.proxmox.json.dumps", lambda *_, answer=answer, **__: answer)
        with pytest.raises(
            LabError, match="the answer does not come from Proxmox's API: are host and port right"
        ):
            ask(server, NEXT)


TOKENS: list[tuple[str, str | None, int, str]] = [
    ("open to others", f"{TOKEN_ID}={SECRET}\n", 0o644, "token_file: .*readable by others; run: chmod 600"),
    ("no secret in it", f"{TOKEN_ID}\n", 0o600, "its first line must be USER@REALM!NAME=SECRET"),
    ("no name in it", f"lab@pve={SECRET}\n", 0o600, "must be USER@REALM!NAME, such as"),
    (
        "a secret that breaks lines",
        f"{TOKEN_ID}=abc\x01defghijkl\n",
        0o600,
        "the secret must have at least 8 letters",
    ),
    ("no file", None, 0, "cannot be read: No such file"),
]


@pytest.mark.parametrize(
    ("text", "mode", "message"), [row[1:] for row in TOKENS], ids=[row[0] for row in TOKENS]
)
def test_a_token_that_cannot_be_used_is_a_sentence(
    tmp_path: Path, text: str | None, mode: int, message: str
) -> None:
    file = tmp_path / "token"
    if text is not None:
        file.write_text(text)
        file.chmod(mode)
    with pytest.raises(LabError, match=message) as raised:
        token(file, {})
    assert SECRET not in str(raised.value)


def test_tokens_come_from_the_environment_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN_ID}={SECRET}\n")
    file.chmod(0o600)
    for found in (token(file, {}), token(None, ENVIRONMENT)):
        assert (found.id, found.secret) == (TOKEN_ID, SECRET)
        assert SECRET not in repr(found)
    with pytest.raises(LabError, match="set PLIMSOLL_PROXMOX_TOKEN_ID and PLIMSOLL_PROXMOX_TOKEN_SECRET, or"):
        token(None, {})


def agent(*rows: tuple[str, str]) -> Any:
    """What a guest agent answers: interfaces and their addresses."""
    return {"result": [{"name": name, "ip-addresses": [{"ip-address": text}]} for name, text in rows]}


ADDRESSES: list[tuple[str, Any, str | None]] = [
    ("IPv4 goes first", agent(("eth0", "2001:db8::7"), ("eth0", "10.0.0.5")), "10.0.0.5"),
    (
        "IPv6 alone is in brackets",
        agent(("lo", "::1"), ("eth0", "fe80::1"), ("eth0", "2001:db8::7")),
        "[2001:db8::7]",
    ),
    (
        "containers' bridges are passed over",
        agent(("docker0", "172.17.0.1"), ("ens18", "10.0.0.6")),
        "10.0.0.6",
    ),
    ("what is no address is passed over", agent(("eth0", "x"), ("eth0", "169.254.1.1")), None),
    ("nothing", agent(), None),
    (
        "a container on a node of today",
        [{"name": "eth0", "inet": "10.0.0.5/24", "ip-addresses": [{"ip-address": "10.0.0.5", "prefix": 24}]}],
        "10.0.0.5",
    ),
    ("on an older node", [{"name": "eth0", "inet": "10.0.0.5/24", "inet6": "2001:db8::5/64"}], "10.0.0.5"),
    ("on an older node with IPv6 alone", [{"name": "eth0", "inet6": "2001:db8::5/64"}], "[2001:db8::5]"),
    ("loopback alone, before its network is up", [{"name": "lo", "inet": "127.0.0.1/8"}], None),
    ("a container that does not run", None, None),
]


@pytest.mark.parametrize(
    ("answer", "address"), [row[1:] for row in ADDRESSES], ids=[row[0] for row in ADDRESSES]
)
def test_the_address_is_the_one_that_others_reach(answer: Any, address: str | None) -> None:
    assert guest_address(answer) == address


@pytest.mark.parametrize("answer", [None, 5, {}, "UPID:x", "UPID:a/../b:00000001:00000001:00000001:t:1:u:"])
def test_what_is_no_task_is_none(answer: Any) -> None:
    assert task(answer) is None
