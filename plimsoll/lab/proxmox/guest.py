"""The address of a guest, from its list of interfaces. Pure."""

import ipaddress
import re
from typing import Any

_NOT_OUTWARD = re.compile(r"lo\d*|docker\d*|(?:br-|veth|virbr|cni|tun|tap).*")


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
