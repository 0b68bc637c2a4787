"""`plimsoll ab`: which of two servers is faster, and how sure that is."""

import json
import sys
from pathlib import Path

import click

from plimsoll.common.commands import json_option, out_option, progress_option
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
@click.option("--insecure", is_flag=True, help="Accept any certificate.")
@click.option("--format", "log_format", metavar="F", help="Format of the log. Default: detected.")
@click.option(
    "--speed", metavar="S", type=float, default=1.0, show_default=True, help="Multiple of the log's pace."
)
@click.option(
    "--gate",
    "gates",
    metavar="FIGURE:LIMIT",
    multiple=True,
    help="A limit: p99.9:1.10x (times the baseline's), p99:480ms, errors:0.1% (more than the baseline's).  "
    "[default: p99.9:1.10x and errors:0.1%]",
)
@click.option("--runs", metavar="N", type=int, help="Runs a side, an even number.  [default: 8]")
@click.option("--within", metavar="TIME", help="As many runs as fit into 45m, 1h or so, in place of --runs.")
@click.option(
    "--duration",
    metavar="TIME",
    help="Length of a run.  [default: what the limits' percentiles take, at most 5m]",
)
@click.option(
    "--looks",
    type=click.Choice(["blocks", "end"]),
    default="blocks",
    show_default=True,
    help="Decide after each block of four runs, or once, at the end, which finds a little more.",
)
@click.option("--allow-differences", is_flag=True, help="Go on where the two sites serve other pages.")
@click.option("--resume", metavar="DIR", type=_PATH, help="Continue an experiment that was interrupted.")
@out_option("DIR", "Folder for results.", default="results", show_default=True)
@json_option
@progress_option
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
        folder = begin_trial(plan)
    result = carry_out(folder, progress)
    if as_json:
        click.echo(json.dumps(result.as_json(), indent=2, allow_nan=False))
    else:
        click.echo("\n".join(result.lines()))
    sys.exit(result.exit_code)


def _required(logs: tuple[str, ...], baseline: str | None, candidate: str | None) -> list[tuple[str, object]]:
    return [("LOG", logs), ("--baseline", baseline), ("--candidate", candidate)]
