"""Proxmox's API: calls carried out, repeated where that helps, and their tasks waited for."""

import asyncio
import contextlib
import ipaddress
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.lab.proxmox.connection import ApiConnection, ApiError, FaultKind, task_error
from plimsoll.lab.steps.step import Call

NEXT_ID = "/cluster/nextid"
_NUMBERS = 10  # tried for one clone, in case others make guests too
_LOG_LINES = 3
_STOP_S = 60.0
_ADDRESSES = ("/agent/network-get-interfaces", "/interfaces")
_STOPS = ("/status/stop", "/status/shutdown")

_UPID = re.compile(
    r"UPID:(?P<node>[A-Za-z0-9][A-Za-z0-9.-]*):[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8,9}:[0-9A-Fa-f]{8}:"
    r"(?P<kind>[^:\s/]+):(?P<id>[^:\s/]*):(?P<user>[^:\s/]+):"
)
_NOT_OUTWARD = re.compile(r"lo\d*|docker\d*|(?:br-|veth|virbr|cni|tun|tap).*")


@dataclass(frozen=True)
class Task:
    """A task by its UPID: `UPID:node:pid:pstart:starttime:type:id:user:`."""

    upid: str
    node: str
    kind: str
    id: str
    user: str

    @property
    def path(self) -> str:
        """Its path in the API."""
        return f"/nodes/{self.node}/tasks/{self.upid}"


class ProxmoxApi:
    """An Api of steps.runner, and what drivers look with.

    Two answers are more than Proxmox's own: that of a clone has its number (`newid`), which differs from
    the requested one if that was taken meanwhile; that of the guest's interfaces has the `address`.
    """

    def __init__(
        self,
        connection: ApiConnection,
        *,
        pause_s: float = 2.0,
        patience_s: float = 30.0,
        lock_s: float = 300.0,
    ) -> None:
        self._connection, self._pause_s = connection, pause_s
        self._patience_s, self._lock_s = patience_s, lock_s
        self._numbers: str | None = None  # FIRST-LAST, as in the last request for a free number

    async def call(self, call: Call) -> Any:
        """Return the answer, after its task. Raises ApiError."""
        until_s = time.monotonic() + call.until_s
        while True:
            try:
                return await self._answer(call)
            except ApiError as error:
                if error.kind is FaultKind.GONE and call.may_be_gone:
                    return None
                if error.kind is FaultKind.AT_REST and call.path.endswith(_STOPS):
                    return None
                if error.kind is not FaultKind.LATER or time.monotonic() >= until_s:
                    raise
            await asyncio.sleep(self._pause_s)

    async def wait_until_settled(self, node: str, vmid: int, clone_task: str, timeout_s: float) -> None:
        """Wait until the clones of `vmid` that this token began have ended: only then all have their names.

        `clone_task` is the type of their tasks. Raises ApiError.
        """
        path, params = (
            f"/nodes/{node}/tasks",
            {"source": "active", "typefilter": clone_task, "vmid": str(vmid)},
        )
        for row in await self._request("GET", path, params) or ():
            begun = task(row.get("upid"))
            if begun and (begun.kind, begun.id, begun.user) == (
                clone_task,
                str(vmid),
                self._connection.token.id,
            ):
                await self._exit_status(begun, timeout_s, f"an earlier clone of {vmid}")

    async def _answer(self, call: Call) -> Any:
        if call.path == NEXT_ID:
            self._numbers = dict(call.params).get("vmid")
            return await self._free(set())
        if call.method == "POST" and call.path.endswith("/clone"):
            return await self._clone(call)
        answer = await self._work(call, dict(call.params))
        if call.path.endswith(_ADDRESSES):
            if address := guest_address(answer):
                return {"address": address}
            raise ApiError(
                f"{self._describe_call(call)}: the guest has no address: does its network assign one?",
                FaultKind.LATER,
            )
        return answer

    async def _work(self, call: Call, params: Mapping[str, str]) -> Any:
        """Make the request and wait for its task, again and again while the machine is locked."""
        until_s = time.monotonic() + self._lock_s
        while True:
            try:
                answer = await self._request(call.method, call.path, params)
                if call.task_timeout_s is not None and (begun := task(answer)):
                    await self._await_task(begun, call.task_timeout_s, call)
                return answer
            except ApiError as error:
                if error.kind is not FaultKind.LOCKED or time.monotonic() >= until_s:
                    raise
            await asyncio.sleep(self._pause_s)

    async def _request(self, method: str, path: str, params: Mapping[str, str] = {}) -> Any:
        """Ask, and ask again where that can do no harm."""
        until_s = time.monotonic() + self._patience_s
        while True:
            try:
                return await asyncio.to_thread(self._connection.ask, method, path, params)
            except ApiError as error:
                harmless = error.kind is FaultKind.UNREACHED or (
                    error.kind is FaultKind.UNSURE and method == "GET"
                )
                if not harmless or time.monotonic() >= until_s:
                    raise
            await asyncio.sleep(self._pause_s)

    async def _clone(self, call: Call) -> Any:
        params, taken = dict(call.params), set[str]()
        while True:
            try:
                return {"upid": await self._work(call, params), "newid": params["newid"]}
            except ApiError as error:
                taken.add(params["newid"])
                if error.kind is not FaultKind.TAKEN or len(taken) >= _NUMBERS:
                    raise
            await asyncio.sleep(self._pause_s)
            params["newid"] = await self._free(taken)

    async def _free(self, taken: set[str]) -> str:
        """Return a number that no guest has, of those that may be taken."""
        if self._numbers is None:
            return str(await self._request("GET", NEXT_ID))
        first, _, last = self._numbers.partition("-")
        rows = await self._request("GET", "/cluster/resources", {"type": "vm"})
        used = taken | {str(row.get("vmid")) for row in rows or ()}
        for number in map(str, range(int(first), int(last) + 1)):
            if number not in used:
                try:
                    return str(await self._request("GET", NEXT_ID, {"vmid": number}))
                except ApiError as error:
                    if error.kind is not FaultKind.TAKEN:  # by one that this token does not see
                        raise
        raise ApiError(
            f"{self._connection.api}: no number from {first} to {last} is free: "
            "remove guests, or widen vmid_range"
        )

    async def _await_task(self, begun: Task, timeout_s: float, call: Call) -> None:
        """Wait for a task. Raises ApiError where it fails, or lasts too long: then it is stopped."""
        exit_status = await self._exit_status(begun, timeout_s, call.says, stop=True)
        if not is_success(exit_status):
            raise task_error(self._describe_call(call), exit_status, await self._log(begun))

    async def _exit_status(self, begun: Task, timeout_s: float, what: str, stop: bool = False) -> str:
        until_s = time.monotonic() + timeout_s
        try:
            while time.monotonic() < until_s:
                state = await self._request("GET", f"{begun.path}/status")
                if state.get("status") == "stopped":
                    return str(state.get("exitstatus", ""))
                await asyncio.sleep(self._pause_s)
        except asyncio.CancelledError:
            if stop:
                await asyncio.shield(self._stop(begun))
            raise
        if stop:
            await self._stop(begun)
        raise ApiError(
            f"{self._connection.api}: {what}: not done after {timeout_s:g} s"
            f"{', so its task was stopped' if stop else ''}: raise the timeout, "
            f"or check what keeps the storage busy ({begun.upid})"
        )

    async def _stop(self, begun: Task) -> None:
        """Stop a task, and see it end: a clone that is stopped removes what it made."""
        until_s = time.monotonic() + _STOP_S
        with contextlib.suppress(ApiError):
            await self._request("DELETE", begun.path)
            while time.monotonic() < until_s:
                state = await self._request("GET", f"{begun.path}/status")
                if state.get("status") == "stopped":
                    return
                await asyncio.sleep(self._pause_s)

    async def _log(self, begun: Task) -> list[str]:
        """Return the last lines of a task's log; none where it cannot be read."""
        try:
            rows = await self._request("GET", f"{begun.path}/log", {"limit": "5000"})
        except ApiError:
            return []
        return [str(row.get("t", "")) for row in rows or ()][-_LOG_LINES:]

    def _describe_call(self, call: Call) -> str:
        return f"{self._connection.api}: {call.says}"


def task(answer: Any) -> Task | None:
    """Return the task that `answer` names, None where it names none."""
    found = _UPID.fullmatch(answer) if isinstance(answer, str) else None
    return Task(answer, found["node"], found["kind"], found["id"], found["user"]) if found else None


def is_success(exit_status: str) -> bool:
    """Return whether a task that ended did what it was for; warnings do not count."""
    return exit_status == "OK" or exit_status.startswith("WARNINGS")


def guest_address(answer: Any) -> str | None:
    """Return the address that the guest is reached at, in brackets where it is IPv6; None where it has none.

    `answer` is the agent's of a virtual machine, or the node's for a container: a list, in which older nodes
    have one `inet` and `inet6` with their prefixes. IPv4 goes before IPv6; loopback, link-local, and the
    interfaces of containers inside do not count.
    """
    found: list[str] = []
    for interface in _list({"result": answer} if isinstance(answer, list) else answer, "result"):
        if _NOT_OUTWARD.fullmatch(str(interface.get("name", ""))):
            continue
        older = [{"ip-address": str(interface.get(key, "")).partition("/")[0]} for key in ("inet", "inet6")]
        for row in _list(interface, "ip-addresses") or older:
            try:
                address = ipaddress.ip_address(str(row.get("ip-address", "")))
            except ValueError:
                continue
            if address.is_loopback or address.is_link_local or address.is_unspecified:
                continue
            found.append(str(address) if address.version == 4 else f"[{address}]")
    return min(found, key=lambda text: text.startswith("["), default=None)


def _list(holder: Any, key: str) -> list[dict[str, Any]]:
    rows = holder.get(key) if isinstance(holder, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
