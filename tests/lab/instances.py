"""Several k6 instances, each in a network namespace of its own, before one nginx."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from tests.lab.programs import ROOT, need

K6 = ROOT / "bin" / "k6-plimsoll"
K6_RUN = (str(K6), "run", "--quiet", "--no-usage-report", "--address", "")
SCRIPT = """
import plimsoll from 'k6/x/plimsoll';
const options_ = JSON.parse(__ENV.OPTIONS);
export const options = { scenarios: { replay: plimsoll.scenario({ instances: Number(__ENV.INSTANCES) }) } };
const log = plimsoll.open(options_);
export default function () { log.replay(); }
"""


def ip(*args: str) -> None:
    subprocess.run([need("ip"), *args], check=True, capture_output=True, text=True)


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
            subprocess.run([need("ip"), "netns", "delete", name], capture_output=True, check=False)


def segments(count: int) -> tuple[list[str], str]:
    """The execution segments of `count` equal instances, and their sequence."""
    bounds = [str(Fraction(number, count)) for number in range(count + 1)]
    return [f"{first}:{last}" for first, last in pairwise(bounds)], ",".join(bounds)


def begin(
    script: Path,
    options: str,
    within: Sequence[str] = (),
    part: Sequence[str] = (),
    instances: int | None = None,
) -> subprocess.Popen[str]:
    """Start one instance; `part` is its segment and the sequence of all."""
    script.write_text(SCRIPT)
    count = instances or (part[1].count(",") if part else 1)
    segment = ("--execution-segment", part[0], "--execution-segment-sequence", part[1]) if part else ()
    told = ("--env", f"OPTIONS={options}", "--env", f"INSTANCES={count}", str(script))
    command = [*within, *K6_RUN, "--summary-mode", "disabled", *segment, *told]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def soon(seconds: float) -> str:
    """An instant so many seconds from now, as startAt wants it."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
