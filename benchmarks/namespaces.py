"""Network namespaces around a bridge: machines for instances that shall not share an address or ports."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

_IP = shutil.which("ip") or "/usr/sbin/ip"


def ip(*args: str) -> None:
    subprocess.run([_IP, *args], check=True, capture_output=True, text=True)


@dataclass(frozen=True)
class Network:
    """A hub with a bridge, and namespaces that reach it and nothing else."""

    hub: str
    address: str
    namespaces: list[str]

    def within(self, name: str) -> tuple[str, ...]:
        return ("ip", "netns", "exec", name)


@contextmanager
def network(count: int) -> Iterator[Network]:
    """Make the namespaces, and remove them again with all that is in them."""
    mark = f"plimsoll-{os.getpid()}"
    hub, names = f"{mark}-hub", [f"{mark}-{number}" for number in range(count)]
    try:
        ip("netns", "add", hub)
        ip("-n", hub, "link", "add", "bridge", "type", "bridge")
        ip("-n", hub, "addr", "add", "10.231.77.1/24", "dev", "bridge")
        ip("-n", hub, "link", "set", "bridge", "up")
        ip("-n", hub, "link", "set", "lo", "up")
        for number, name in enumerate(names):
            ip("netns", "add", name)
            ip("-n", hub, "link", "add", f"to{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("-n", hub, "link", "set", f"to{number}", "master", "bridge", "up")
            ip("-n", name, "addr", "add", f"10.231.77.{number + 10}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield Network(hub, "10.231.77.1", names)
    finally:
        for name in (*names, hub):
            subprocess.run([_IP, "netns", "delete", name], capture_output=True, check=False)


def segments(count: int) -> tuple[list[str], str]:
    """The execution segments of `count` equal instances, and their sequence."""
    bounds = [str(Fraction(number, count)) for number in range(count + 1)]
    return [f"{first}:{last}" for first, last in pairwise(bounds)], ",".join(bounds)
