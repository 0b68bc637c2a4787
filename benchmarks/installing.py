"""Getting the peers from package registries: once, with pinned versions, each on its own.

A peer that cannot be had is reported with the reason, and the others go on.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import nginx, versions
from benchmarks.paths import (
    AGAINST,
    ARRIVALS,
    BIN,
    GRINDER,
    HERE,
    LOCUST,
    OHA,
    REPLAY,
    ROOT,
    STALL,
    WORK,
    WRK2,
)
from benchmarks.say import say

OHA_VERSION = "1.16.0"
_GO = HERE / "go"
_LOCUST_LOCK = HERE / "locust-requirements.lock"


@dataclass(frozen=True)
class Installed:
    name: str
    version: str | None
    why: str = ""  # why it is not there

    @property
    def missing(self) -> str:
        return f"{self.name} is not installed: {self.why}"


class CannotInstallError(Exception):
    """The reason, in a few words."""


def install(names: Sequence[str], given: Mapping[str, Path] | None = None) -> dict[str, Installed]:
    """Get the peers; `given` has the places of those that are in no registry."""
    found = {}
    for name in names:
        try:
            if name in _GIVEN:
                _GIVEN[name]((given or {}).get(name))
            else:
                _STEPS[name]()
            found[name] = Installed(name, versions.of(name))
            say(f"{name}: {found[name].version}")
        except (CannotInstallError, OSError, ValueError, subprocess.SubprocessError) as error:
            found[name] = Installed(name, None, str(error))
            say(found[name].missing)
    return found


def _run(
    argv: Sequence[str], log: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> None:
    """A step whose output is kept, and quoted only when it fails."""
    if shutil.which(argv[0]) is None:
        raise CannotInstallError(f"{Path(argv[0]).name} is not there, which installs it")
    say(f"installing: {' '.join(map(str, argv[:4]))} …")
    WORK.mkdir(parents=True, exist_ok=True)
    path = WORK / f"install-{log}.log"
    with path.open("w") as file:
        code = subprocess.call(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            preexec_fn=_politely,
            env={**os.environ, **(env or {})},
        )
    if code != 0:
        words = [line.strip() for line in path.read_text(errors="replace").splitlines() if line.strip()]
        raise CannotInstallError(
            f"{' '.join(map(str, argv[:3]))} ended with {code}: {(words or ['no output'])[-1][:160]}"
        )


def _politely() -> None:
    """Compiling k6 and oha takes minutes: others on the machine go first."""
    os.nice(10)


def _once(key: str, pinned_by: Sequence[Path], there: Path, step: Callable[[], None]) -> None:
    """Do the step unless it was done already for the same pins."""
    pins = hashlib.sha256(b"".join(path.read_bytes() for path in pinned_by)).hexdigest()
    stamp = WORK / f"installed-{key}"
    if there.exists() and stamp.exists() and stamp.read_text() == pins:
        return
    step()
    stamp.write_text(pins)


def _debian(package: str, there: Callable[[], str | None]) -> None:
    if there() is not None:
        return
    if os.geteuid() != 0:
        raise CannotInstallError(f"as root: apt-get install {package}")
    _run(["apt-get", "update"], "apt-update")
    install_it = ["apt-get", "install", "-y", "--no-install-recommends", package]
    _run(install_it, package, env={"DEBIAN_FRONTEND": "noninteractive"})
    if there() is None:
        raise CannotInstallError(f"Debian's package {package} brought no such program")


def _oha() -> None:
    if OHA.exists() and versions.of("oha") == OHA_VERSION:
        return
    root = str(WORK / "cargo")
    _run(["cargo", "install", "--locked", "--force", "--version", OHA_VERSION, "--root", root, "oha"], "oha")


def _go(package: str, binary: str) -> None:
    def build() -> None:
        BIN.mkdir(parents=True, exist_ok=True)
        _run(["go", "build", "-o", str(BIN / binary), package], binary, cwd=_GO)

    _once(binary, [_GO / "go.mod", _GO / "go.sum"], BIN / binary, build)


def _own_server(path: Path) -> None:
    BIN.mkdir(parents=True, exist_ok=True)
    _run(["go", "build", "-o", str(path), f"./{path.name}"], path.name, cwd=_GO)


def _locust() -> None:
    venv = LOCUST.parent.parent

    def build() -> None:
        _run([sys.executable, "-m", "venv", "--clear", str(venv)], "locust-venv")
        pip = str(venv / "bin" / "pip")
        _run([pip, "install", "--require-hashes", "--only-binary=:all:", "-r", str(_LOCUST_LOCK)], "locust")

    _once("locust", [_LOCUST_LOCK], LOCUST, build)


def _grinder() -> None:
    _debian("default-jre-headless", lambda: shutil.which("java"))
    _debian("maven", lambda: shutil.which("mvn"))
    pom = HERE / "grinder" / "pom.xml"
    lib = GRINDER / "lib"
    copy = ["mvn", "-B", "-q", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={lib}"]
    _once("grinder", [pom], lib, lambda: _run(copy, "grinder"))


def _replay() -> None:
    if not REPLAY.exists():
        raise CannotInstallError("build it first: make build")


def _against(binary: Path | None) -> None:
    """A copy, since its makers may build another one in its place meanwhile."""
    if binary is None:
        raise CannotInstallError("give it: --against FILE")
    BIN.mkdir(parents=True, exist_ok=True)
    shutil.copy2(binary, AGAINST)


def _wrk2(source: Path | None) -> None:
    """Built from a copy of its source; a build of the same source is kept."""
    if source is None:
        if not WRK2.exists():
            raise CannotInstallError("give its source: make peers WRK2=DIR")
        return
    files = sorted((source / "src").glob("*.[ch]"))
    if source / "src" / "hdr_histogram.c" not in files:
        raise CannotInstallError(f"{source} is not its source: it has no src/hdr_histogram.c")
    _debian("libssl-dev", lambda: "yes" if Path("/usr/include/openssl/ssl.h").exists() else None)

    def build() -> None:
        copy = WORK / "wrk2"
        shutil.rmtree(copy, ignore_errors=True)
        built = shutil.ignore_patterns(".git", "obj", "*.o", "*.a")
        shutil.copytree(source, copy, symlinks=True, ignore=built)
        _run(["make", "-C", str(copy)], "wrk2")
        BIN.mkdir(parents=True, exist_ok=True)
        shutil.copy2(copy / "wrk", WRK2)

    _once("wrk2", files, WRK2, build)


def _k6x() -> None:
    _run(["make", "-s", "k6"], "k6x", cwd=ROOT)


_STEPS: dict[str, Callable[[], None]] = {
    "replay": _replay,
    "goaccess": lambda: _debian("goaccess", lambda: shutil.which("goaccess")),
    "nginx": lambda: _debian("nginx-light", nginx.program),
    "wrk": lambda: _debian("wrk", lambda: shutil.which("wrk")),
    "oha": _oha,
    "h2load": lambda: _debian("nghttp2-client", lambda: shutil.which("h2load")),
    "openssl": lambda: _debian("openssl", lambda: shutil.which("openssl")),
    "hey": lambda: _go("github.com/rakyll/hey", "hey"),
    "vegeta": lambda: _go("github.com/tsenart/vegeta/v12", "vegeta"),
    "k6": lambda: _go("go.k6.io/k6", "k6"),
    "k6x": _k6x,
    "locust": _locust,
    "grinder": _grinder,
    "arrivals": lambda: _own_server(ARRIVALS),
    "stall": lambda: _own_server(STALL),
}

# What the user has to give.
_GIVEN: dict[str, Callable[[Path | None], None]] = {
    "against": _against,
    "wrk2": _wrk2,
}
