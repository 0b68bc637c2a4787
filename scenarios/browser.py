"""An author's day in a real browser: browser.js on k6, with the Chromium that the system has."""

import io
import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from PIL import Image
from pydantic import Field, model_validator

from analysis.errors import PlimsollError
from scenarios.consent import ask_leave, origin
from scenarios.credentials import Credentials, credentials
from scenarios.k6build import HERE, k6_program
from scenarios.k6run import Job, Progress, Say, run_k6
from scenarios.session import facts, run_directory
from scenarios.settings import ChangingSettings
from scenarios.targets import resolved

_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
_FLAGS = (
    "disable-background-networking",
    "disable-component-update",
    "disable-gpu",
    "disable-quic",
    "disable-sync",
    "no-first-run",
    "no-proxy-server",
)
SCREENSHOTS = "screenshots"


class Settings(ChangingSettings):
    """What the browser can be told."""

    usual_iterations: ClassVar[int] = 1

    iterations: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="How many days, by all users together; default: 1, or without limit with --duration-s.",
    )
    timeout_s: float = Field(60.0, gt=0, le=86400, description="Seconds until a step has failed.")
    chromium: Path | None = Field(
        None, description="The browser; default: chromium, where the system has it."
    )
    no_screenshots: bool = Field(False, description="Take no picture of the first day's steps.")

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if self.iterations is not None and self.duration_s is not None:
            raise ValueError("--duration-s: cannot be given with --iterations: k6 takes one of them")
        return self


class NoBrowserError(PlimsollError):
    """There is no Chromium."""


def run(settings: Settings, progress: Progress, say: Say) -> tuple[Path, bool]:
    """Spend the day; return the run directory, and whether all went well.

    Raises SettingsError, ConsentError, NoBrowserError, NoK6Error.
    """
    account = credentials(settings)
    ask_leave(settings, "browser")
    chromium = chromium_program(settings.chromium)
    k6, version = k6_program(say)
    directory = run_directory(settings.out, "browser")
    with tempfile.TemporaryDirectory(prefix="plimsoll-browser-") as scratch:
        image, browser = Path(scratch) / "photograph.jpg", Path(scratch) / "chromium"
        image.write_bytes(photograph(settings.seed))
        browser.write_text(confined(chromium, resolver_rules(settings.target, settings.connect_to)))
        browser.chmod(0o700)
        job = Job(
            k6=k6,
            script=HERE / "browser.js",
            told=told(settings, account, browser, image, directory.resolve(), os.geteuid() == 0),
            timeout_s=settings.timeout_s,
            remedy="give fewer users at a time",
            ramping=False,
            iterations=lambda elapsed_s, done: expected(settings, elapsed_s, done),
            secrets=(account.password,),
            one_failure_a_day=True,
        )
        if not settings.no_screenshots:
            (directory / SCREENSHOTS).mkdir()
        made = facts("browser", settings, k6=version)
        return directory, run_k6(job, directory, made, progress, say)


def told(
    settings: Settings, account: Credentials, browser: Path, image: Path, directory: Path, root: bool
) -> Mapping[str, str]:
    """Return what browser.js and k6's browser module are told, by environment variables. Pure."""
    values: dict[str, object | None] = {
        "PLIMSOLL_TARGET": settings.target,
        "PLIMSOLL_USER": account.user,
        "PLIMSOLL_PASSWORD": account.password,
        "PLIMSOLL_ITERATIONS": settings.planned,
        "PLIMSOLL_DURATION_S": settings.duration_s,
        "PLIMSOLL_USERS": settings.users,
        "PLIMSOLL_SEED": settings.seed,
        "PLIMSOLL_TIMEOUT_S": settings.timeout_s,
        "PLIMSOLL_INSECURE": 1 if settings.insecure else None,
        "PLIMSOLL_IMAGE": image,
        "PLIMSOLL_NAME": directory.name,
        "PLIMSOLL_SCREENSHOTS": None if settings.no_screenshots else directory / SCREENSHOTS,
        "K6_BROWSER_EXECUTABLE_PATH": browser,
        "K6_BROWSER_HEADLESS": "true",
        "K6_BROWSER_ARGS": ",".join((*_FLAGS, "no-sandbox") if root else _FLAGS),
    }
    return {name: str(value) for name, value in values.items() if value is not None}


def expected(settings: Settings, elapsed_s: float, done: int) -> int:
    """Return how many days there will be, as far as that can be said. Pure."""
    if settings.duration_s is None:
        return settings.planned or done
    return round(done * max(settings.duration_s / max(elapsed_s, 0.1), 1.0))


def resolver_rules(target: str, connect_to: str | None) -> str:
    """Return Chromium's --host-resolver-rules: no name but the target's leads anywhere."""
    _, host, port = origin(target)
    if connect_to is None:
        return f"MAP * ~NOTFOUND , EXCLUDE {host}"
    return f"MAP {host}:{port} {resolved(connect_to)} , MAP * ~NOTFOUND"


def confined(chromium: str, rules: str) -> str:
    """Return a program that starts `chromium` with the rules. Pure.

    They hold a comma, at which K6_BROWSER_ARGS would be cut.
    """
    return f'#!/bin/sh\nexec {shlex.quote(chromium)} "$@" {shlex.quote(f"--host-resolver-rules={rules}")}\n'


def chromium_program(given: Path | None) -> str:
    """Return the path of the browser. Raises NoBrowserError."""
    names = _NAMES if given is None else (str(given),)
    for name in names:
        if found := shutil.which(name):
            return str(Path(found).resolve()) if os.sep in name else found
    if given is not None:
        raise NoBrowserError(f"--chromium: {given} is no program that can be run")
    raise NoBrowserError("no Chromium is installed: install it (Debian: chromium), or give --chromium PATH")


def photograph(seed: int, width: int = 1600, height: int = 1067) -> bytes:
    """Return a JPEG of a seeded landscape with the grain of a photograph: about half a megabyte. Pure."""
    chance = np.random.default_rng(seed)
    rows = np.linspace(0.0, 1.0, height)[:, None]
    columns = np.linspace(0.0, 1.0, width)[None, :]
    hills = (
        0.5 + 0.1 * np.sin(columns * chance.uniform(4, 12)) + 0.05 * np.sin(columns * chance.uniform(20, 40))
    )
    land = rows > hills
    colours = [
        np.where(land, base_land, base_sky + 60 * rows)
        for base_sky, base_land in ((90, 60), (140, 110), (200, 50))
    ]
    picture = np.stack([np.broadcast_to(colour, (height, width)) for colour in colours], axis=2)
    grained = picture + chance.normal(0, 12, picture.shape)
    file = io.BytesIO()
    Image.fromarray(np.clip(grained, 0, 255).astype(np.uint8)).save(file, "JPEG", quality=88)
    return file.getvalue()
