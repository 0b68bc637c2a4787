"""`plimsoll merge`: shards become one run."""

import json
from pathlib import Path

import click

from analysis.recording.merge import merge as merge_shards
from analysis.recording.outcome import outcome_lines


@click.command()
@click.argument("shards", metavar="SHARD...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out", metavar="DIR", required=True, type=click.Path(path_type=Path), help="The run directory to write."
)
@click.option("--json", "as_json", is_flag=True, help="Print summary.json on standard output.")
def merge(shards: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Merge the run directories of several processes or machines into one.

    The percentiles are those of all requests together. The run is complete only if every shard is; exit 1 if
    it is not.

    \b
    Example:
        plimsoll merge shards/0 shards/1 --out results/merged
    """  # noqa: D301 \b is click's: keep these lines as they are
    run = merge_shards(shards, out)
    if as_json:
        click.echo(json.dumps(json.loads((out / "summary.json").read_text(encoding="utf-8"))))
    else:
        click.echo("\n".join(outcome_lines(out)))
    raise SystemExit(0 if run.facts.status == "complete" else 1)
