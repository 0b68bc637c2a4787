"""An author's day in a real browser: browser.js on k6, with the Chromium that the system has."""

import os
import secrets
import shlex
import shutil
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import Field

from plimsoll.common.errors import PlimsollError
from plimsoll.common.hostile import printable
from plimsoll.rundir.names import SCREENSHOTS_FOLDER
from plimsoll.scenarios.k6.build import k6_program
from plimsoll.scenarios.k6.run import Job, Progress, Say, resolve_address, run_k6
from plimsoll.scenarios.running.access import ACCESS_FILES, read_access, script_access
from plimsoll.scenarios.running.clonelist import Credentials, credentials, require_ready
from plimsoll.scenarios.running.session import build_facts, run_directory, run_name
from plimsoll.scenarios.running.settings import origin
from plimsoll.scenarios.settings import BrowserSettings
from plimsoll.scenarios.wordpress.content import small_photograph

ABOUT = {
    "does": "spends an author's day in a real browser: read, log in, write, save, upload (k6, Chromium)",
    "needs": "an author's account on WordPress, Chromium, and Go for the first run",
    "changes": "adds an article and an image",
}

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


class ScriptSettings(BrowserSettings):
    """The settings as browser.js takes them."""

    iterations: int | None = Field(
        BrowserSettings.usual_iterations, description="How many days, without duration_s."
    )
    user: str | None = Field("", description="Name of the account.")
    password: str = Field("", repr=False, description="Password of the account.")
    image: Path | None = Field(None, description="File to upload; without one nothing is uploaded.")
    name: str = Field("today", description="Name of the run, at the end of titles and file names.")
    screenshots: Path | None = Field(None, description="Folder for screenshots.")
    access: dict[str, Any] = Field(
        {}, repr=False, description="What a guarded site asks for; see k6/access.js."
    )
    secrets: tuple[str, ...] = Field((), repr=False, description="What is kept out of the names of steps.")


class NoBrowserError(PlimsollError):
    """Chromium is not installed."""


def run(settings: BrowserSettings, progress: Progress, say: Say) -> tuple[Path, bool]:
    """Run the scenario; return the run directory, and True if all went well.

    Raises SettingsError, ConsentError, NoBrowserError, NoK6Error.
    """
    require_ready("browser", settings)
    account = credentials(settings)
    chromium = chromium_program(settings.chromium)
    k6, version = k6_program(say)
    directory = run_directory(settings.out, "browser")
    with tempfile.TemporaryDirectory(prefix="plimsoll-browser-") as scratch:
        image, browser = Path(scratch) / "photograph.jpg", Path(scratch) / "chromium"
        image.write_bytes(small_photograph(settings.seed))
        browser.write_text(confining_script(chromium, resolver_rules(settings.target, settings.connect_to)))
        browser.chmod(0o700)
        name = run_name(datetime.now(UTC), secrets.randbits(32))
        job = Job(
            k6=k6,
            script=Path(__file__).with_name("browser.js"),
            settings=script_settings(settings, account, image, directory.resolve(), name),
            k6_variables=k6_variables(browser, root=os.geteuid() == 0),
            timeout_s=settings.timeout_s,
            remedy="lower --users",
            ramping=False,
            iterations=lambda elapsed_s, done: estimate_days(settings, elapsed_s, done),
            secrets=(account.password, *read_access(settings).secrets),
            one_failure_a_day=True,
            run_name=name,
        )
        if not settings.no_screenshots:
            (directory / SCREENSHOTS_FOLDER).mkdir()
        run_facts = build_facts("browser", settings, k6=version, chromium=chromium_version(chromium))
        return directory, run_k6(job, directory, run_facts, progress, say)


def script_settings(
    settings: BrowserSettings, account: Credentials, image: Path, directory: Path, name: str
) -> ScriptSettings:
    """Return the settings for browser.js. Raises SettingsError for files that have disappeared."""
    access = read_access(settings)
    return ScriptSettings(
        **settings.model_dump(exclude={"iterations", "user", *ACCESS_FILES}),
        access=script_access(access),
        secrets=(*access.secrets, account.password),
        iterations=settings.planned,
        user=account.user,
        password=account.password,
        image=image,
        name=name,
        screenshots=None if settings.no_screenshots else directory / SCREENSHOTS_FOLDER,
    )


def k6_variables(browser: Path, *, root: bool) -> dict[str, str]:
    """Return the environment variables of k6's browser module. Pure."""
    return {
        "K6_BROWSER_EXECUTABLE_PATH": str(browser),
        "K6_BROWSER_HEADLESS": "true",
        "K6_BROWSER_ARGS": ",".join((*_FLAGS, "no-sandbox") if root else _FLAGS),
    }


def estimate_days(settings: BrowserSettings, elapsed_s: float, done: int) -> int:
    """Return an estimate of the number of days. Pure."""
    if settings.duration_s is None:
        return settings.planned or done
    return round(done * max(settings.duration_s / max(elapsed_s, 0.1), 1.0))


def resolver_rules(target: str, connect_to: str | None) -> str:
    """Return Chromium's --host-resolver-rules: only the target's name resolves."""
    _, host, port = origin(target)
    if connect_to is None:
        return f"MAP * ~NOTFOUND , EXCLUDE {host}"
    return f"MAP {host}:{port} {resolve_address(connect_to)} , MAP * ~NOTFOUND"


def confining_script(chromium: str, rules: str) -> str:
    """Return a program that starts `chromium` with the rules. Pure.

    They hold a comma, at which K6_BROWSER_ARGS would be cut.
    """
    return f'#!/bin/sh\nexec {shlex.quote(chromium)} "$@" {shlex.quote(f"--host-resolver-rules={rules}")}\n'


def chromium_program(path: Path | None) -> str:
    """Return the path of the browser. Raises NoBrowserError."""
    names = _NAMES if path is None else (str(path),)
    for name in names:
        if found := shutil.which(name):
            return str(Path(found).resolve()) if os.sep in name else found
    if path is not None:
        raise NoBrowserError(f"--chromium: {path} is not a program that can be run")
    raise NoBrowserError("Chromium is not installed: install it (Debian: chromium), or set --chromium PATH")


def chromium_version(program: str) -> str:
    """Return what the browser says of its version, such as `Chromium 131.0.6778.85`; `unknown` if nothing."""
    try:
        said = subprocess.run(  # noqa: S603 the user's
            [program, "--version"], capture_output=True, text=True, timeout=60, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return printable(said.strip(), 100) or "unknown"
