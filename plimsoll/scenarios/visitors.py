"""Visitors who read pages with all their files, at a rate or ramping up: visitors.js on k6."""

import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from plimsoll.common.errors import SettingsError
from plimsoll.rundir.facts import RunFacts
from plimsoll.scenarios.k6.build import k6_program
from plimsoll.scenarios.k6.run import Job, Progress, Say, k6_hosts, run_k6
from plimsoll.scenarios.running.access import ACCESS_FILES, read_access, script_access
from plimsoll.scenarios.running.session import build_facts, run_directory
from plimsoll.scenarios.running.settings import HostPort, IdleKeys, NoLoad, ScenarioSettings, origin

ABOUT = {
    "does": "lets up to thousands of visitors read pages with all their files, at a rate or ramping up (k6)",
    "needs": "Go for the first run, which builds k6",
    "changes": None,
}
Model = Literal["constant-arrival-rate", "ramping-arrival-rate", "ramping-vus"]
_STAGE = re.compile(r"([0-9]+(?:\.[0-9]+)?)(s|m|h)?:([0-9]+(?:\.[0-9]+)?)")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_IN_STAGES = "the stages define it: remove --stages"


class Stage(NamedTuple):
    """A straight line from the last stage's target (first from 0) to `target`."""

    duration_s: float
    target: float


def parse_stages(text: str) -> list[Stage]:
    """Return the stages of `text`. Raises ValueError that names the wrong part."""
    stages = []
    for part in text.split(","):
        found = _STAGE.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"{part!r} is not a stage such as 30s:10")
        stages.append(Stage(float(found[1]) * _SECONDS[found[2] or "s"], float(found[3])))
    if not any(stage.target for stage in stages) or not all(stage.duration_s for stage in stages):
        raise ValueError("needs a target above 0, and a duration above 0 in each stage")
    return stages


def _check_stages(value: str) -> str:
    parse_stages(value)
    return value


Stages = Annotated[str, AfterValidator(_check_stages)]


class Settings(ScenarioSettings):
    """Settings of the visitors."""

    idle_keys: ClassVar[IdleKeys] = [
        (
            "stages",
            lambda its: its.model == "constant-arrival-rate",
            "a constant rate has no stages: choose a --model that ramps",
        ),
        ("rate", lambda its: its.model == "ramping-vus", "this model has no rate: choose another --model"),
        ("rate", lambda its: its.model == "ramping-arrival-rate" and its.stages, _IN_STAGES),
        (
            "visitors",
            lambda its: its.model != "ramping-vus",
            "the rate decides how many visitors come: choose --model ramping-vus",
        ),
        ("visitors", lambda its: its.model == "ramping-vus" and its.stages, _IN_STAGES),
        ("duration_s", lambda its: its.model != "constant-arrival-rate" and its.stages, _IN_STAGES),
        (
            "max_visitors",
            lambda its: its.model == "ramping-vus",
            "--visitors already gives their number: choose another --model",
        ),
        (
            "think_s",
            lambda its: its.pages_per_visit == 1 and its.model != "ramping-vus",
            "a visit of one page has no pause: raise --pages-per-visit",
        ),
        *(
            (key, lambda its: its.no_files, "no images are requested: remove --no-files")
            for key in ("viewport_px", "pixel_ratio")
        ),
    ]

    model: Model = Field(
        "constant-arrival-rate",
        description="constant-arrival-rate or ramping-arrival-rate (visits begin when due, whatever the site "
        "does), or ramping-vus (a number of visitors, each waiting for the site).",
    )
    rate: float = Field(5.0, gt=0, le=100_000, description="Visits a second; for a ramp, at its peak.")
    visitors: int = Field(100, ge=1, le=100_000, description="Visitors at the peak of ramping-vus.")
    duration_s: float = Field(60.0, gt=0, le=604_800, description="Seconds until the last visit begins.")
    stages: Stages | None = Field(
        None, description="Your own ramps: 30s:10,2m:50 rises to 10 within 30 s, then to 50 within 2 minutes."
    )
    pages_per_visit: int = Field(3, ge=1, le=1000, description="Pages in one visit.")
    think_s: float = Field(2.0, ge=0, le=3600, description="Mean seconds between two pages.")
    pages: Path | None = Field(
        None, description="File with one path or address per line; default: pages that the site links to."
    )
    max_pages: int = Field(
        200, ge=1, le=10_000, description="Largest number of pages to look for on the site."
    )
    skew: float = Field(
        1.0, ge=0, le=5, description="Page i is read in proportion to 1/i^skew; 0: all equally."
    )
    no_files: bool = Field(False, description="Request pages without their styles, scripts and images.")
    viewport_px: int = Field(
        1366, ge=100, le=10_000, description="Width of the visitors' screens in CSS pixels, for srcset."
    )
    pixel_ratio: float = Field(
        1.0, ge=0.5, le=5, description="Screen pixels per CSS pixel: 2 on most phones."
    )
    max_visitors: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="Largest number of visitors at a time. Default: derived from the rate.",
    )
    max_p999_ms: Annotated[float | None, NoLoad("what the run is held against")] = Field(
        None, gt=0, description="Exit with 1 unless p99.9 of the pages' response time is below this."
    )
    dashboard: Annotated[HostPort | None, NoLoad("what is shown")] = Field(
        None, description="HOST:PORT for k6's web dashboard during the run."
    )
    timeout_s: float = Field(
        60.0, gt=0, le=86400, description="Seconds of silence after which a request fails."
    )


class ScriptSettings(Settings):
    """The settings as visitors.js takes them."""

    hosts: dict[str, str] = Field({}, description="k6's option: where the target's name and port lead.")
    access: dict[str, Any] = Field(
        {}, repr=False, description="What a guarded site asks for; see k6/access.js."
    )


def run(settings: Settings, progress: Progress, say: Say) -> tuple[Path, bool]:
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


def script_settings(settings: Settings) -> ScriptSettings:
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


def estimate_visits(settings: Settings, elapsed_s: float, done: int) -> int:
    """Return an estimate of the number of visits. Pure."""
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
    problems, count = [], 0
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        count += 1
        if line.startswith("/") and not line.startswith("//"):
            continue
        if urlsplit(line).scheme not in ("http", "https") or origin(line) != origin(target):
            problems.append(f"--pages: {path}:{number}: is neither a path (/…) nor an address on {target}")
    if not count:
        problems.append(f"--pages: {path} lists no page: write one path per line")
    if problems:
        raise SettingsError("\n".join(problems[:20]))


def _facts(settings: Settings, version: str) -> RunFacts:
    open_loop = settings.model != "ramping-vus"
    run_facts = build_facts("visitors", settings, loop="open" if open_loop else "closed", k6=version)
    if settings.stages:
        speed = f"{'rate' if open_loop else 'visitors'} {settings.stages}"
    elif settings.model == "constant-arrival-rate":
        speed = f"rate {settings.rate:g}/s"
    else:
        speed = f"up to {settings.rate:g}/s" if open_loop else f"up to {settings.visitors} visitors"
    return run_facts.model_copy(update={"speed": speed})
