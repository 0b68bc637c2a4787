"""Visitors who read pages with all their files, at a rate or ramping up: visitors.js on k6."""

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from analysis.recording import RunFacts
from scenarios.consent import origin
from scenarios.errors import SettingsError
from scenarios.k6build import HERE, k6_program
from scenarios.k6run import Job, Progress, Say, run_k6
from scenarios.session import facts, run_directory
from scenarios.settings import HostPort, ScenarioSettings
from scenarios.stages import Stage, parsed_stages
from scenarios.targets import k6_hosts

Model = Literal["constant-arrival-rate", "ramping-arrival-rate", "ramping-vus"]


def _checked(value: str) -> str:
    parsed_stages(value)
    return value


Stages = Annotated[str, AfterValidator(_checked)]


class Settings(ScenarioSettings):
    """What the visitors can be told."""

    model: Model = Field(
        "constant-arrival-rate",
        description="constant-arrival-rate or ramping-arrival-rate (visits begin when they are due, whatever "
        "the site does), or ramping-vus (so many visitors, who wait for the site).",
    )
    rate: float = Field(5.0, gt=0, le=100_000, description="Visits a second; of a ramp its highest.")
    visitors: int = Field(100, ge=1, le=100_000, description="ramping-vus: how many at most.")
    duration_s: float = Field(60.0, gt=0, le=604_800, description="Seconds until the last visit begins.")
    stages: Stages | None = Field(
        None,
        description="Ramps of your own, such as 30s:10,2m:50,30s:0: in 30 s to 10, in 2 more minutes to 50.",
    )
    pages_per_visit: int = Field(3, ge=1, le=1000, description="Pages that a visitor reads.")
    think_s: float = Field(2.0, ge=0, le=3600, description="Mean time between two pages, half of it or more.")
    pages: Path | None = Field(
        None, description="File of pages, one path or address a line; default: what the site links to."
    )
    max_pages: int = Field(200, ge=1, le=10_000, description="How many pages are looked for on the site.")
    skew: float = Field(
        1.0, ge=0, le=5, description="Page i is read in proportion to 1/i^skew; 0: all alike."
    )
    no_files: bool = Field(
        False, description="Leave out what pages bring with them: styles, scripts, images."
    )
    max_visitors: int | None = Field(
        None, ge=1, le=100_000, description="Most visitors at a time at a rate; default: made from the rate."
    )
    max_p999_ms: float | None = Field(
        None, gt=0, description="Exit with 1 where p99.9 of the pages' response time is not below this."
    )
    dashboard: HostPort | None = Field(
        None, description="HOST:PORT for k6's own web dashboard, while it runs."
    )
    timeout_s: float = Field(60.0, gt=0, le=86400, description="Seconds until a silent server has failed.")


def run(settings: Settings, progress: Progress, say: Say) -> tuple[Path, bool]:
    """Let the visitors in; return the run directory, and whether all went well.

    Raises SettingsError for a file of pages that cannot be used, NoK6Error.
    """
    if settings.pages is not None:
        check_pages(settings.pages, settings.target)
    k6, version = k6_program(say)
    if settings.dashboard:
        say(f"Dashboard: http://{settings.dashboard}")
    directory = run_directory(settings.out, "visitors")
    job = Job(
        k6=k6,
        script=HERE / "visitors.js",
        told=told(settings),
        timeout_s=settings.timeout_s,
        remedy="give more with --max-visitors, or lower --rate",
        ramping=settings.model == "ramping-arrival-rate",
        iterations=lambda elapsed_s, done: expected(settings, elapsed_s, done),
    )
    return directory, run_k6(job, directory, _facts(settings, version), progress, say)


def told(settings: Settings) -> dict[str, str]:
    """Return what visitors.js is told, by environment variables. Pure but for a name that is resolved."""
    values: dict[str, object | None] = {
        "TARGET": settings.target,
        "MODEL": settings.model,
        "RATE": settings.rate,
        "VISITORS": settings.visitors,
        "DURATION_S": settings.duration_s,
        "STAGES": settings.stages,
        "PAGES_PER_VISIT": settings.pages_per_visit,
        "THINK_S": settings.think_s,
        "PAGES": settings.pages.resolve() if settings.pages else None,
        "MAX_PAGES": settings.max_pages,
        "SKEW": settings.skew,
        "NO_FILES": 1 if settings.no_files else None,
        "MAX_VISITORS": settings.max_visitors,
        "MAX_P999_MS": settings.max_p999_ms,
        "SEED": settings.seed,
        "TIMEOUT_S": settings.timeout_s,
        "INSECURE": 1 if settings.insecure else None,
        "HOSTS": k6_hosts(settings.target, settings.connect_to) if settings.connect_to else None,
    }
    variables = {f"PLIMSOLL_{name}": str(value) for name, value in values.items() if value is not None}
    return variables | _dashboard(settings.dashboard)


def _dashboard(where: str | None) -> dict[str, str]:
    if where is None:
        return {}
    host, _, port = where.rpartition(":")
    return {
        "K6_WEB_DASHBOARD": "true",
        "K6_WEB_DASHBOARD_HOST": host.strip("[]"),
        "K6_WEB_DASHBOARD_PORT": port,
        "K6_WEB_DASHBOARD_PERIOD": "1s",
    }


def expected(settings: Settings, elapsed_s: float, done: int) -> int:
    """Return how many visits there will be, as far as that can be said. Pure."""
    if settings.model == "constant-arrival-rate":
        return round(settings.rate * settings.duration_s)
    if settings.model == "ramping-arrival-rate":
        steps = _steps(settings)
        starts = [0.0, *(step.target for step in steps)]
        return round(sum((a + s.target) / 2 * s.duration_s for a, s in zip(starts, steps, strict=False)))
    total_s = sum(step.duration_s for step in _steps(settings))
    return round(done * max(total_s / max(elapsed_s, 0.1), 1.0))


def _steps(settings: Settings) -> list[Stage]:
    if settings.stages:
        return parsed_stages(settings.stages)
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
        raise SettingsError(f"--pages: {path} is no UTF-8 text") from None
    problems, count = [], 0
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        count += 1
        if line.startswith("/") and not line.startswith("//"):
            continue
        if urlsplit(line).scheme not in ("http", "https") or origin(line) != origin(target):
            problems.append(f"--pages: {path}:{number}: is neither a path that begins with / nor on {target}")
    if not count:
        problems.append(f"--pages: {path} holds no page: write one path a line")
    if problems:
        raise SettingsError("\n".join(problems[:20]))


def _facts(settings: Settings, version: str) -> RunFacts:
    open_loop = settings.model != "ramping-vus"
    made = facts("visitors", settings, loop="open" if open_loop else "closed", k6=version)
    if settings.stages:
        speed = f"{'rate' if open_loop else 'visitors'} {settings.stages}"
    elif settings.model == "constant-arrival-rate":
        speed = f"rate {settings.rate:g}/s"
    else:
        speed = f"up to {settings.rate:g}/s" if open_loop else f"up to {settings.visitors} visitors"
    return made.model_copy(update={"speed": speed})
