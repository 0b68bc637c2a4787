"""`plimsoll merge`: shards become one run."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from plimsoll.analysis.exchange.merge import merge_shards
from plimsoll.analysis.statistics.summary import outcome_lines
from plimsoll.common.hostile import printable
from plimsoll.common.progress import is_shown, progress_bar, progress_option
from plimsoll.common.units import count, plain_ms
from plimsoll.rundir.facts import Instance, LimitVerdict, RunFacts
from plimsoll.rundir.names import SUMMARY_FILE
from plimsoll.rundir.read import read_json

_HEAD = f"{'instance':<34} {'status':<11} {'sent':>11} {'unsent':>11} {'lag p99.9 ms':>12} {'p99.9 ms':>11}"


@click.command()
@click.argument("shards", metavar="SHARD...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out", metavar="DIR", required=True, type=click.Path(path_type=Path), help="The run directory to write."
)
@click.option("--json", "as_json", is_flag=True, help="Print summary.json on standard output.")
@progress_option
def merge(shards: tuple[Path, ...], out: Path, as_json: bool, progress: bool | None) -> None:
    """Merge the run directories of several processes or machines into one.

    A folder stands for the shards in it. The percentiles are those of all requests together. The run is
    complete only if every shard is and none is missing: those that are not are named, and what they had
    left to send is counted.

    \b
    Examples:
        plimsoll merge shards --out results/merged
        plimsoll merge host1/0 host2/1 host3/2 host4/3 --out results/merged
        plimsoll merge shards --out results/merged --json | jq .instances

    Exit codes: 0 the run is complete, within its limits; 1 merged, but it is not, or is over one; 2 nothing
    was merged; 3 it is complete, but a limit could not be judged.
    """  # noqa: D301 \b is click's: keep these lines as they are
    with progress_bar("merging", "records read", is_shown(progress)) as advance:
        run = merge_shards(shards, out, advance)
    summary = read_json(out / SUMMARY_FILE)
    if as_json:
        click.echo(json.dumps(summary))
    else:
        click.echo("\n".join([*instance_lines(summary["instances"]), "", *outcome_lines(out)]))
    _report(run.facts, as_json)
    limits = [LimitVerdict.model_validate(one) for one in summary.get("limits", [])]
    for one in limits:
        click.echo(printable(f"limit {one.limit}: {one.outcome}: {one.says}", 1000), err=as_json)
    raise SystemExit(_exit_code(run.facts.status, {one.outcome for one in limits}))


def _exit_code(status: str, outcomes: set[str]) -> int:
    if status != "complete" or "exceeded" in outcomes:
        return 1
    return 3 if "not judged" in outcomes else 0


def _report(facts: RunFacts, as_json: bool) -> None:
    """Print what is to be known of the merged run, on standard error where standard output is JSON."""
    said = [f"{one.level}: {one.text}" for one in (facts.merged.says if facts.merged else [])]
    if facts.generator_limited_reason:
        said.append(f"bad: limited by its generator: {facts.generator_limited_reason}")
    for text in said:
        click.echo(printable(text, 20_000), err=as_json)


def instance_lines(instances: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line for each of summary.json's `instances`, under a head; what is not known is a dash."""
    return [_HEAD, *(_line(Instance.model_validate(one)) for one in instances)]


def _line(one: Instance) -> str:
    counts = f"{count(one.sent):>11} {count(one.unsent):>11}"
    times = f"{plain_ms(one.lag_ms.p999):>12} {plain_ms(one.response_ms.p999):>11}"
    return f"{printable(one.name, 34):<34} {one.status:<11} {counts} {times}"
