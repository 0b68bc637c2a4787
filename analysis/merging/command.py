"""`plimsoll merge`: shards become one run."""

import json
from pathlib import Path

import click

from analysis.hostile import printable
from analysis.merging.lines import instance_lines
from analysis.merging.merge import merge as merge_shards
from analysis.models import RunFacts
from analysis.progress import is_shown, progress_bar, progress_option
from analysis.recording.outcome import outcome_lines


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

    Exit codes: 0 the run is complete; 1 merged, but it is not complete; 2 nothing was merged.
    """  # noqa: D301 \b is click's: keep these lines as they are
    with progress_bar("merging", "records read", is_shown(progress)) as advance:
        run = merge_shards(shards, out, advance)
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    if as_json:
        click.echo(json.dumps(summary))
    else:
        click.echo("\n".join([*instance_lines(summary["instances"]), "", *outcome_lines(out)]))
    _tell(run.facts, as_json)
    raise SystemExit(0 if run.facts.status == "complete" else 1)


def _tell(facts: RunFacts, as_json: bool) -> None:
    """Print what is to be known of the merged run, on standard error where standard output is JSON."""
    said = [f"{one.level}: {one.text}" for one in (facts.merged.says if facts.merged else [])]
    if facts.generator_limited_reason:
        said.append(f"bad: limited by its generator: {facts.generator_limited_reason}")
    for text in said:
        click.echo(printable(text, 20_000), err=as_json)
