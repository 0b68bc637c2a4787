"""The k6 that runs visitors and browsers: built once from the Go module proxy, pinned by k6/go.mod."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from plimsoll.common.errors import PlimsollError
from plimsoll.common.programs import own_program

MODULE = Path(__file__).resolve().parent
BINARY = own_program("k6")
OLDEST = (1, 0)  # the first whose browser module, options and samples are those that the scripts use
_GO_MINOR = 26
_VERSION = re.compile(r"\bv?(\d+)\.(\d+)\.(\d+)")

Say = Callable[[str], None]


class NoK6Error(PlimsollError):
    """There is no k6, and it cannot be built; the message says what is missing."""


def k6_program(say: Say, environment: Mapping[str, str] = os.environ) -> tuple[Path, str]:
    """Return k6 and its version: the user's own (PLIMSOLL_K6), else the pinned one, built if necessary.

    Raises NoK6Error.
    """
    if own := environment.get("PLIMSOLL_K6"):
        return _check_own(own)
    wanted = pinned_version((MODULE / "go.mod").read_text(encoding="utf-8"))
    if k6_version(BINARY) != wanted:
        with _lock():
            if k6_version(BINARY) != wanted:  # another may have built it meanwhile
                _build(wanted, say)
    return BINARY, wanted


def pinned_version(go_mod: str) -> str:
    """Return the version of k6 that a go.mod wants: `1.4.0`. Pure."""
    found = re.search(r"^\s*go\.k6\.io/k6 v(\S+)", go_mod, re.M)
    if found is None:
        raise NoK6Error(f"{MODULE / 'go.mod'}: does not name a version of go.k6.io/k6")
    return found[1]


def k6_version(program: Path) -> str | None:
    """Return the version that `k6 version` prints: `1.4.0`; None if the program is missing or is not k6."""
    try:
        said = subprocess.run(  # noqa: S603 our own, or the user's
            [program, "version"], capture_output=True, text=True, timeout=60, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(said) if said.startswith("k6") else None
    return None if found is None else ".".join(found.groups())


def _check_own(given: str) -> tuple[Path, str]:
    found = shutil.which(given)
    version = k6_version(Path(found)) if found else None
    if found is None or version is None:
        raise NoK6Error(f"PLIMSOLL_K6: {given} is not a k6 that can be run; unset it to use the pinned one")
    if tuple(map(int, version.split(".")[:2])) < OLDEST:
        raise NoK6Error(f"PLIMSOLL_K6: {given} is k6 {version}, too old: 1.0 or newer is needed, or unset it")
    return Path(found).resolve(), version


@contextmanager
def _lock() -> Iterator[None]:
    """Let only one process at a time build."""
    try:
        BINARY.parent.mkdir(exist_ok=True)
        with (BINARY.parent / ".k6.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise NoK6Error(
            f"{BINARY.parent}: cannot be written ({error.strerror}); set PLIMSOLL_K6 to your own k6"
        ) from None


def _build(version: str, say: Say) -> None:
    go = _find_go()
    say(f"Building k6 {version} from the Go module proxy (once, takes some minutes) ...")
    temporary = BINARY.parent / f".k6-{os.getpid()}"
    log = BINARY.parent / ".k6-build.log"
    command = [go, "build", "-trimpath", "-o", str(temporary), "go.k6.io/k6"]
    try:
        with log.open("wb") as file:
            process = subprocess.Popen(  # noqa: S603 fixed arguments
                command,
                cwd=MODULE,
                env={**os.environ, "CGO_ENABLED": "0"},  # as k6's own releases and `make k6`: compiled once
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
            try:
                _await_compiler(process, sys.stderr.isatty())
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait()
        if process.returncode != 0:
            lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
            last = (lines or ["the compiler printed nothing"])[-1][:300]
            raise NoK6Error(f"k6 {version} cannot be built: {last} (all of it: {log})")
        temporary.replace(BINARY)
        log.unlink()
    finally:
        temporary.unlink(missing_ok=True)
    say(f"Built {BINARY}")


def _await_compiler(process: "subprocess.Popen[bytes]", shown: bool) -> None:
    """Wait for the compiler, which prints nothing, and show that time passes."""
    started_s = time.monotonic()
    while process.poll() is None:
        if shown:
            print(f"\r  {time.monotonic() - started_s:.0f} s ", end="", file=sys.stderr, flush=True)
        time.sleep(0.5)
    if shown:
        print("\r", end="", file=sys.stderr, flush=True)


def _find_go() -> str:
    """Return the Go compiler. Raises NoK6Error if it is missing or too old."""
    go = shutil.which(os.environ.get("GO") or "go")
    if go is None:
        raise NoK6Error(
            "k6 is not built yet, and building it needs Go 1.26 or newer: install it (Debian: golang-go, or "
            "go.dev/dl), or set PLIMSOLL_K6 to a k6 of your own"
        )
    said = subprocess.run(  # noqa: S603 the compiler
        [go, "env", "GOVERSION"], capture_output=True, text=True, check=False
    ).stdout.strip()
    found = re.fullmatch(r"go1\.(\d+).*", said)
    if found and int(found[1]) < _GO_MINOR:
        raise NoK6Error(
            f"building k6 needs Go 1.26 or newer, and {go} is {said}; install a newer one, or set GO"
        )
    return go
