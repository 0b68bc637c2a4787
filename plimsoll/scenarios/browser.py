"""An author's day in a real browser: browser.js on k6, with the Chromium that the system has."""

import os
import secrets
import shlex
import shutil
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field, model_validator

from plimsoll.common.errors import PlimsollError
from plimsoll.common.hostile import printable
from plimsoll.rundir.names import SCREENSHOTS_FOLDER
from plimsoll.scenarios.k6.build import k6_program
from plimsoll.scenarios.k6.run import Job, Progress, Say, resolve_address, run_k6
from plimsoll.scenarios.running.access import ACCESS_FILES, read_access, script_access
from plimsoll.scenarios.running.clonelist import Credentials, credentials, require_ready
from plimsoll.scenarios.running.session import build_facts, run_directory, run_name
from plimsoll.scenarios.running.settings import NoLoad, WordpressSettings, origin
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


def _no_certificate(value: Path | None) -> None:
    if value is not None:
        raise ValueError(
            "cannot be given to a browser: Chromium takes no certificate from a file. Let the clone's web "
            "server ask for a password or a header instead (--basic-auth-file, --header-file)"
        )


class Settings(WordpressSettings):
    """Settings of the browser."""

    usual_iterations: ClassVar[int] = 1

    iterations: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Days, by all users together; default: 1, or no limit with --duration-s.",
    )
    timeout_s: float = Field(60.0, gt=0, le=86400, description="Seconds after which a step fails.")
    client_cert: Annotated[Path | None, AfterValidator(_no_certificate)] = Field(
        None, description="Not available: Chromium takes no certificate from a file."
    )
    client_key: Annotated[Path | None, AfterValidator(_no_certificate)] = Field(
        None, description="Not available: Chromium takes no certificate from a file."
    )
    think_s: float = Field(
        0.0,
        ge=0,
        le=3600,
        description="Seconds of further writing before publishing and before saving again.",
    )
    chromium: Annotated[Path | None, NoLoad("where the program is; its version shapes load")] = Field(
        None, description="Path of the browser; default: the system's Chromium."
    )
    no_screenshots: bool = Field(False, description="Take no screenshots of the first day's steps.")

    @model_validator(mode="after")
    def _check_end(self) -> Self:
        if self.iterations is not None and self.duration_s is not None:
            raise ValueError("--duration-s: cannot be combined with --iterations")
        return self


class ScriptSettings(Settings):
    """The settings as browser.js takes them."""

    iterations: int | None = Field(
        Settings.usual_iterations, description="How many days, without duration_s."
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


def run(settings: Settings, progress: Progress, say: Say) -> tuple[Path, bool]:
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
    settings: Settings, account: Credentials, image: Path, directory: Path, name: str
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


def estimate_days(settings: Settings, elapsed_s: float, done: int) -> int:
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
