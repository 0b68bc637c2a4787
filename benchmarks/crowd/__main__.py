"""Build the guest, start it, and print what came of it."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks import logs
from benchmarks.measure import RunFailedError
from benchmarks.nginx import FILE_BYTES, FILE_PATH, config, program
from benchmarks.paths import REPLAY

_HERE = Path(__file__).resolve().parent
_PORT = 8080
_REQUESTS_EACH = 8
_SPARE_FILES = 10_000
_APPLETS = ("awk", "cat", "ip", "mount", "pidof", "reboot", "sh", "sleep", "taskset", "uname", "wget")


@dataclass(frozen=True)
class Crowd:
    users: int
    seconds: int
    ramp_up_s: int
    pauses_s: tuple[int, int]
    source_address: str

    def settings(self) -> str:
        """What the guest's first process reads."""
        return (
            f"USERS={self.users}\nSECONDS_LONG={self.seconds}\nRAMP_UP_S={self.ramp_up_s}\n"
            f"IDLE_S={2 * self.pauses_s[1]}\nSOURCES={self.source_address}\n"
        )


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--kernel", required=True, metavar="FILE", help="A kernel: /boot/vmlinuz-….")
@click.option("--users", type=click.IntRange(1), default=100_000, show_default=True, help="How many at once.")
@click.option("--seconds", type=click.IntRange(1), default=650, show_default=True, help="How long they stay.")
@click.option(
    "--ramp-up", type=click.IntRange(1), default=600, show_default=True, help="Seconds in which they arrive."
)
@click.option(
    "--pauses",
    type=(int, int),
    default=(600, 1800),
    show_default=True,
    help="Seconds between two requests of one.",
)
@click.option("--source-address", default="127.0.1.0/28", show_default=True, help="As of bin/replay run.")
@click.option(
    "--memory-gib", type=click.IntRange(1), default=6, show_default=True, help="Memory of the guest."
)
@click.option("--under", metavar="DIR", type=click.Path(path_type=Path), help="Folder for the guest's image.")
def main(
    kernel: str,
    users: int,
    seconds: int,
    ramp_up: int,
    pauses: tuple[int, int],
    source_address: str,
    memory_gib: int,
    under: Path | None,
) -> None:
    """Let so many users at once visit an nginx in a virtual machine: how much memory does bin/replay take?

    Exits with 0 where every request got its answer, 1 where one did not, 2 where nothing could be measured.
    """
    crowd = Crowd(users, seconds, ramp_up, pauses, source_address)
    try:
        with tempfile.TemporaryDirectory(prefix="crowd-", dir=under) as folder:
            console = _start(kernel, memory_gib, _image(Path(folder), crowd))
        found = figures(console)
    except RunFailedError as error:
        print(f"benchmarks.crowd: {error}", file=sys.stderr)
        sys.exit(2)
    print(json.dumps({"users": users, **found}, indent=2))
    sys.exit(0 if found["errors"] == 0 else 1)


def _image(folder: Path, crowd: Crowd) -> Path:
    """Lay out the guest's files, and pack them as the kernel wants them."""
    root = folder / "root"
    for name in ("bin", "etc", "proc", "sys", "dev", "tmp", "var/log/nginx", "var/lib/nginx", "nginx/root"):
        (root / name).mkdir(parents=True)
    for name in _APPLETS:
        (root / "bin" / name).symlink_to("busybox")
    for path in (_found("busybox"), _found("time"), program() or _found("nginx")):
        _install(root, path)
    (root / "bin/time").rename(root / "bin/gnu-time")  # busybox's own counts memory fourfold
    shutil.copy(REPLAY, root / "bin" / "replay")
    shutil.copy(_HERE / "init", root / "init")
    (root / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "nginx/root" / FILE_PATH.lstrip("/")).write_bytes(b"x" * FILE_BYTES)
    nginx = config(_PORT, Path("/nginx"), crowd.users + _SPARE_FILES, as_root=True)
    # Emulated, it may be behind by many connections: those past its backlog would fail after two minutes.
    (root / "nginx/nginx.conf").write_text(re.sub(r"backlog=\d+", f"backlog={crowd.users}", nginx))
    (root / "crowd.conf").write_text(crowd.settings())
    clients = crowd.users * 6 // 5
    with (root / "access.log").open("w") as log:
        log.writelines(logs.sessions(clients, _REQUESTS_EACH, FILE_PATH, crowd.pauses_s, arriving_s=clients))
    image = folder / "image"
    names = "\n".join(str(path.relative_to(root)) for path in [root, *sorted(root.rglob("*"))])
    with image.open("wb") as out:
        pack = ["busybox", "cpio", "-o", "-H", "newc"]
        subprocess.run(
            pack, cwd=root, input=names.encode(), stdout=out, stderr=subprocess.DEVNULL, check=True
        )
    shutil.rmtree(root)
    return image


def _found(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise RunFailedError(
            f"{name} is not installed (Debian: apt install busybox-static time nginx qemu-system-x86)"
        )
    return path


def _install(root: Path, path: str) -> None:
    """A program and the libraries that it is linked with, where the loader looks for them."""
    shutil.copy(path, root / "bin")
    linked = subprocess.run([_found("ldd"), path], capture_output=True, text=True, check=False).stdout
    for library in libraries(linked):
        place = root / library.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, place)


def libraries(ldd: str) -> list[str]:
    """The files that ldd names; none for a program that is linked with nothing."""
    return re.findall(r"(?:=> |^\s*)(/\S+) \(0x", ldd, re.MULTILINE)


def _start(kernel: str, memory_gib: int, image: Path) -> str:
    """Start the guest, show its console on standard error, and return it when the guest has ended."""
    command = [
        *(_found("qemu-system-x86_64"), "-accel", "tcg", "-cpu", "max", "-smp", "2"),
        *("-m", f"{memory_gib}G", "-nodefaults", "-nographic", "-no-reboot", "-serial", "stdio"),
        *("-kernel", kernel, "-initrd", str(image), "-append", "console=ttyS0 panic=-1 quiet"),
    ]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace"
    ) as vm:
        assert vm.stdout is not None
        return "".join(_shown(vm.stdout))


def _shown(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        print(line.rstrip(), file=sys.stderr, flush=True)
        yield line.rstrip() + "\n"


def figures(console: str) -> dict[str, Any]:
    """What the guest said: memory, sent requests, errors."""
    parts = dict(re.findall(r"^--- (\w+)\n(.*?)(?=^--- )", console, re.MULTILINE | re.DOTALL))
    rss = re.search(r"Maximum resident set size \(kbytes\): (\d+)", console)
    seen = re.search(r"^seen by nginx: (\d+)", console, re.MULTILINE)
    sockets = [int(number) for number in re.findall(r"sockets open: (\d+)", console)]
    try:
        summary = json.loads(parts["summary"])
    except (KeyError, ValueError):
        raise RunFailedError("the guest did not get to its end; see its console above") from None
    if rss is None or seen is None:
        raise RunFailedError("the guest did not say how much memory was used; see its console above")
    requests = summary["requests"]
    return {
        "max_rss_mib": round(int(rss[1]) / 1024, 1),
        "sent": requests["sent"],
        "errors": requests["errors"],
        "seen_by_nginx": int(seen[1]),
        "most_sockets": max(sockets, default=None),
        "duration_s": summary["duration_s"],
    }


if __name__ == "__main__":
    main()
