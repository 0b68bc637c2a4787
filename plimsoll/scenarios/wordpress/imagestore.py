"""The store of generated photographs on this machine; makes those that are missing."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from plimsoll.common.errors import OutputError, PlimsollError
from plimsoll.scenarios.wordpress.images import file_of, is_whole

_SAY_EACH_S = 10.0


def default_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder for photographs below the XDG cache folder."""
    base = environment.get("XDG_CACHE_HOME") or ""
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "plimsoll" / "images"


def prepare(
    folder: Path,
    seed: int,
    total: int,
    say: Callable[[str], None],
    before: Callable[[], None] = lambda: None,
) -> None:
    """Make photographs 1 … `total` of `seed` that `folder` lacks, on all processors.

    `before` is called first where some are missing: it may refuse. Raises OutputError when the folder takes
    no more.
    """
    missing = [number for number in range(1, total + 1) if not is_whole(file_of(folder, seed, number))]
    if not missing:
        return
    before()
    say(f"Making {len(missing)} photographs in {folder} (once; some 5 MB and up to a second each) …")
    shares = [share for index in range(_processors()) if (share := missing[index :: _processors()])]
    makers = [_start(folder, seed, share) for share in shares]
    try:
        _wait(makers, lambda: _say_how_many(folder, seed, missing, say))
        said = [maker.communicate()[1].strip() for maker in makers]
    finally:
        for maker in makers:
            if maker.poll() is None:
                maker.terminate()
            maker.wait()
    failed = next((text for maker, text in zip(makers, said, strict=True) if maker.returncode), None)
    if failed is not None:
        why = failed.splitlines()[-1] if failed else "the program that makes them ended"
        raise OutputError(f"photographs cannot be made: {why}; choose another folder with --cache")
    if not all(is_whole(file_of(folder, seed, number)) for number in missing):
        raise PlimsollError(f"{folder}: photographs are missing although they have just been made")


def _processors() -> int:
    return os.cpu_count() or 1


def _start(folder: Path, seed: int, numbers: list[int]) -> "subprocess.Popen[str]":
    command = [
        sys.executable,
        "-m",
        "plimsoll.scenarios.wordpress.images",
        str(folder),
        str(seed),
        *map(str, numbers),
    ]
    here = str(Path(__file__).parents[3])
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(  # noqa: S603 this very package
        command,
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _wait(makers: list["subprocess.Popen[str]"], tell: Callable[[], None]) -> None:
    reported_s = time.monotonic()
    while any(maker.poll() is None for maker in makers):
        time.sleep(0.05)
        if time.monotonic() - reported_s >= _SAY_EACH_S:
            reported_s = time.monotonic()
            tell()


def _say_how_many(folder: Path, seed: int, missing: list[int], say: Callable[[str], None]) -> None:
    made = sum(file_of(folder, seed, number).exists() for number in missing)
    say(f"… {made} of {len(missing)}")
