"""Visitors who read pages with all their files, at a rate or ramping up: visitors.js on k6."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field

from plimsoll.common.errors import SettingsError
from plimsoll.rundir.facts import RunFacts
from plimsoll.scenarios.k6.build import k6_program
from plimsoll.scenarios.k6.run import Job, Progress, Say, k6_hosts, run_k6
from plimsoll.scenarios.running.access import ACCESS_FILES, read_access, script_access
from plimsoll.scenarios.running.session import build_facts, run_directory
from plimsoll.scenarios.running.settings import origin
from plimsoll.scenarios.settings import MOST_PAGES, Stage, VisitorsSettings, parse_stages

ABOUT = {
    "does": "lets up to thousands of visitors read pages with all their files, at a rate or ramping up (k6)",
    "needs": "Go for the first run, which builds k6",
    "changes": None,
}


class ScriptSettings(VisitorsSettings):
    """The settings as visitors.js takes them."""

    hosts: dict[str, str] = Field({}, description="k6's option: where the target's name and port lead.")
    access: dict[str, Any] = Field(
        {}, repr=False, description="What a guarded site asks for; see k6/access.js."
    )


def run(settings: VisitorsSettings, progress: Progress, say: Say) -> tuple[Path, bool]:
    """Run the scenario; return the run directory, and True if all went well.

    Raises SettingsError for a file of pages that cannot be used, NoK6Error.
    """
    access = read_access(settings)
    if settings.pages is not None:
        check_pages(settings.pages, settings.target)
    k6, version = k6_program(say)
    if settings.dashboard:
        say(f"Dashboard: http://{settings.dashboard}")
    directory = run_directory(settings.out, "visitors")
    job = Job(
        k6=k6,
        script=Path(__file__).with_name("visitors.js"),
        settings=script_settings(settings),
        k6_variables=dashboard_variables(settings.dashboard),
        timeout_s=settings.timeout_s,
        remedy="raise --max-visitors, or lower --rate",
        ramping=settings.model == "ramping-arrival-rate",
        iterations=lambda elapsed_s, done: estimate_visits(settings, elapsed_s, done),
        secrets=access.secrets,
    )
    return directory, run_k6(job, directory, _facts(settings, version), progress, say)


def script_settings(settings: VisitorsSettings) -> ScriptSettings:
    """Return the settings for visitors.js. The name in `connect_to` is resolved. Raises SettingsError."""
    return ScriptSettings(
        **settings.model_dump(exclude={"pages", *ACCESS_FILES}),
        pages=settings.pages.resolve() if settings.pages else None,
        hosts=k6_hosts(settings.target, settings.connect_to) if settings.connect_to else {},
        access=script_access(read_access(settings)),
    )


def dashboard_variables(where: str | None) -> dict[str, str]:
    """Return the environment variables of k6's web dashboard; none without an address. Pure."""
    if where is None:
        return {}
    host, _, port = where.rpartition(":")
    return {
        "K6_WEB_DASHBOARD": "true",
        "K6_WEB_DASHBOARD_HOST": host.strip("[]"),
        "K6_WEB_DASHBOARD_PORT": port,
        "K6_WEB_DASHBOARD_PERIOD": "1s",
    }


def estimate_visits(settings: VisitorsSettings, elapsed_s: float, done: int) -> int:
    """Return an estimate of the number of visits. Pure."""
    if settings.model == "constant-arrival-rate":
        return round(settings.rate * settings.duration_s)
    if settings.model == "ramping-arrival-rate":
        steps = _steps(settings)
        starts = [0.0, *(step.target for step in steps)]
        return round(sum((a + s.target) / 2 * s.duration_s for a, s in zip(starts, steps, strict=False)))
    total_s = sum(step.duration_s for step in _steps(settings))
    return round(done * max(total_s / max(elapsed_s, 0.1), 1.0))


def _steps(settings: VisitorsSettings) -> list[Stage]:
    if settings.stages:
        return parse_stages(settings.stages)
    most = settings.rate if settings.model == "ramping-arrival-rate" else float(settings.visitors)
    return [
        Stage(settings.duration_s * share / 4, target) for share, target in ((1, most), (2, most), (1, 0.0))
    ]


def check_pages(path: Path, target: str) -> None:
    """Check a file of pages. Raises SettingsError with all its problems, each with its line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SettingsError(f"--pages: {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"--pages: {path} is not UTF-8 text") from None
    listed = [
        (number, line.strip())
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.startswith("#")
    ]
    problems = [
        f"--pages: {path}:{number}: is neither a path (/…) nor an address on {target}"
        for number, line in listed
        if not _is_on(target, line)
    ]
    if not listed:
        problems.append(f"--pages: {path} lists no page: write one path per line")
    if len(listed) > MOST_PAGES:
        problems.append(f"--pages: {path} lists {len(listed):,} pages: shorten it to {MOST_PAGES:,}")
    if problems:
        raise SettingsError("\n".join(problems[:20]))


def _is_on(target: str, page: str) -> bool:
    if re.search(r"[\x00-\x20\\]", page):
        return False
    if page.startswith("/") and not page.startswith("//"):
        return True
    try:
        parts = urlsplit(page)
        return (
            parts.scheme in ("http", "https") and "@" not in parts.netloc and origin(page) == origin(target)
        )
    except ValueError:  # a port that is none, half an IPv6 address
        return False


def _facts(settings: VisitorsSettings, version: str) -> RunFacts:
    open_loop = settings.model != "ramping-vus"
    run_facts = build_facts("visitors", settings, loop="open" if open_loop else "closed", k6=version)
    if settings.stages:
        speed = f"{'rate' if open_loop else 'visitors'} {settings.stages}"
    elif settings.model == "constant-arrival-rate":
        speed = f"rate {settings.rate:g}/s"
    else:
        speed = f"up to {settings.rate:g}/s" if open_loop else f"up to {settings.visitors} visitors"
    return run_facts.model_copy(update={"speed": speed})
