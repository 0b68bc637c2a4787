"""`plimsoll ab` and `rehearse`: which of two servers is faster, and what such an experiment would find."""

import json
import sys
from pathlib import Path

import click

from plimsoll.ab.options import trial_options
from plimsoll.common.errors import SettingsError

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("logs", metavar="LOG...", nargs=-1)
@click.option("--baseline", metavar="URL", help="Base URL of the site as it is.")
@click.option("--candidate", metavar="URL", help="Base URL of the site that may replace it.")
@click.option(
    "--baseline-connect-to",
    metavar="HOST:PORT",
    help="Connect to this address for the baseline. The URL's name stays in Host and SNI.",
)
@click.option(
    "--candidate-connect-to", metavar="HOST:PORT", help="Connect to this address for the candidate."
)
@click.option("--allow-differences", is_flag=True, help="Go on where the two sites serve other pages.")
@trial_options
def ab(
    logs: tuple[str, ...],
    baseline: str | None,
    candidate: str | None,
    baseline_connect_to: str | None,
    candidate_connect_to: str | None,
    insecure: bool,
    log_format: str | None,
    speed: float,
    gates: tuple[str, ...],
    runs: int | None,
    within: str | None,
    duration: str | None,
    looks: str,
    allow_differences: bool,
    resume: Path | None,
    out: Path,
    as_json: bool,
    progress: bool | None,
) -> None:
    """Replay a log against two servers in turns, and say which limits the candidate keeps.

    \b
    Examples:
        plimsoll ab examples/access.log --baseline http://127.0.0.1:8080 --candidate http://127.0.0.1:8081 \\
            --gate p99:1.2x --speed 20 --duration 2s --runs 4
        plimsoll ab access.log --baseline http://10.0.0.5 --candidate http://10.0.0.6 --within 1h
        plimsoll ab --resume results/ab-*

    Runs come in blocks of four, two a side, which replay one part of the log, in an order that is drawn. It
    ends as soon as all limits are decided. A site that redirects to its own name, as WordPress does, takes
    that name in both URLs and an address for each side (--baseline-connect-to).

    Exit codes: 0 PASS; 1 FAIL; 2 wrong usage, or the sides cannot be compared; 3 not decided, or interrupted.
    """  # noqa: D301 \b is click's: keep these lines as they are
    from plimsoll.ab.targets import ServedSide, check_sides
    from plimsoll.ab.trial import begin_trial, carry_out, find_trial, plan_trial

    if resume is not None:
        if logs or baseline or candidate or gates or runs or within or duration:
            raise SettingsError("--resume: the experiment has its settings: give nothing beside it")
        folder = find_trial(resume, "ab")
    else:
        missing = [name for name, given in _required(logs, baseline, candidate) if not given]
        if missing or baseline is None or candidate is None:
            raise SettingsError("\n".join(f"{name}: is missing" for name in missing))
        sides = (
            ServedSide("baseline", baseline, baseline_connect_to, insecure),
            ServedSide("candidate", candidate, candidate_connect_to, insecure),
        )
        plan = plan_trial(
            "ab",
            logs,
            sides,
            log_format=log_format,
            speed=speed,
            limits=gates,
            runs=runs,
            within=within,
            duration=duration,
            looks=looks,
            out=out,
        )
        check_sides(sides, logs, log_format, allow_differences)
        folder = begin_trial(plan, ends_early=looks == "blocks")
    result = carry_out(folder, progress)
    if as_json:
        click.echo(json.dumps(result.as_json(), indent=2, allow_nan=False))
    else:
        click.echo("\n".join(result.lines()))
    sys.exit(result.exit_code)


def _required(logs: tuple[str, ...], baseline: str | None, candidate: str | None) -> list[tuple[str, object]]:
    return [("LOG", logs), ("--baseline", baseline), ("--candidate", candidate)]


@click.command()
@click.argument("logs", metavar="LOG...", nargs=-1)
@click.option("--target", metavar="URL", help="Base URL of the site as it is.")
@click.option(
    "--connect-to",
    metavar="HOST:PORT",
    help="Connect to this address. The URL's name stays in Host and SNI.",
)
@click.option(
    "--from",
    "recorded",
    metavar="DIR",
    type=_PATH,
    multiple=True,
    help="Take these runs of one site, or the folder of some; replay nothing.",
)
@trial_options
def rehearse(
    logs: tuple[str, ...],
    target: str | None,
    connect_to: str | None,
    recorded: tuple[Path, ...],
    insecure: bool,
    log_format: str | None,
    speed: float,
    gates: tuple[str, ...],
    runs: int | None,
    within: str | None,
    duration: str | None,
    looks: str,
    resume: Path | None,
    out: Path,
    as_json: bool,
    progress: bool | None,
) -> None:
    """Say what `plimsoll ab` would find on this site, before anything is moved.

    \b
    Examples:
        plimsoll rehearse examples/access.log --target http://127.0.0.1:8080 --gate p99:1.2x \\
            --speed 20 --duration 2s --runs 4
        plimsoll rehearse access.log --target http://10.0.0.5 --within 1h
        plimsoll rehearse --from results/before --from results/after --gate p99.9:1.2x
        plimsoll rehearse --resume results/rehearse-*

    It replays the log against one site, in blocks of four runs, plants slowdowns that are known into two runs
    of each four, and judges them as `plimsoll ab` would, over hundreds of re-dealings.

    Exit codes: 0 it is known what would be found; 2 wrong usage; 3 the runs cannot be judged, or interrupted.
    """  # noqa: D301 \b is click's: keep these lines as they are
    from plimsoll.ab.rehearsing import carry_out, rehearse_recorded
    from plimsoll.ab.targets import ServedSide, check_answers
    from plimsoll.ab.trial import begin_trial, find_trial, plan_trial

    if resume is not None:
        if logs or target or recorded or gates or runs or within or duration:
            raise SettingsError("--resume: the rehearsal has its settings: give nothing beside it")
        result = carry_out(find_trial(resume, "rehearse"), progress)
    elif recorded:
        if logs or target or connect_to or runs or within or duration:
            raise SettingsError("--from: takes runs as they are: leave LOG, --target and their options out")
        result = rehearse_recorded(recorded, gates, looks, out, progress)
    else:
        if not logs or target is None:
            missing = [name for name, given in (("LOG", logs), ("--target", target)) if not given]
            raise SettingsError("\n".join(f"{name}: is missing (or --from DIR)" for name in missing))
        sides = (
            ServedSide("one", target, connect_to, insecure),
            ServedSide("other", target, connect_to, insecure),
        )
        plan = plan_trial(
            "rehearse",
            logs,
            sides,
            log_format=log_format,
            speed=speed,
            limits=gates,
            runs=runs,
            within=within,
            duration=duration,
            looks=looks,
            out=out,
        )
        check_answers([ServedSide("target", target, connect_to, insecure)])
        result = carry_out(begin_trial(plan, ends_early=False), progress)
    if as_json:
        click.echo(json.dumps(result.as_json(), indent=2, allow_nan=False))
    else:
        click.echo("\n".join(result.lines()))
    sys.exit(result.exit_code)
