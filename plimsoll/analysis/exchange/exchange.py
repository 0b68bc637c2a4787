"""`plimsoll import`, `export` and `merge`: which programs' results and which formats there are.

What reads and writes them is imported when a command is called, so that its help is there at once.
"""

import json
from pathlib import Path

import click

from plimsoll.analysis.exchange.accesslog import accesslog
from plimsoll.analysis.exchange.options import FORMATS, run_options
from plimsoll.common.commands import CommandGroup, json_option, out_option, progress_option
from plimsoll.common.files import STDOUT
from plimsoll.common.hostile import printable
from plimsoll.common.progress import is_shown, progress_bar
from plimsoll.rundir.names import SUMMARY_FILE


@click.group("import", cls=CommandGroup, commands=[accesslog])
def import_() -> None:
    """Make run directories from the results of other programs.

    \b
    Examples:
        plimsoll import accesslog access.log* --format '%h %^[%d:%t %^] "%r" %s %b "%R" "%u" %T'
        plimsoll import k6 result.json.gz --target http://127.0.0.1:8080
    """  # noqa: D301 \b is click's: keep these lines as they are


@import_.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@run_options("grinder")
@click.option(
    "--names",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Names of the tests: a number and a name on each line. Default: as the workers' own logs say.",
)
@click.option(
    "--composite",
    metavar="NUMBER",
    multiple=True,
    type=int,
    help="A test that encloses others: a measure, not a request. May be repeated. Default: as the workers' "
    "own logs say.",
)
@json_option
@progress_option
def grinder(
    files: tuple[Path, ...],
    out: Path,
    scenario: str,
    target: str | None,
    names: Path | None,
    composite: tuple[int, ...],
    as_json: bool,
    progress: bool | None,
) -> None:
    """Import The Grinder's data logs, gzip or not: those of all workers of one run become one run directory.

    \b
    Examples:
        plimsoll import grinder log/load-*-data.log --target http://127.0.0.1:8080
        plimsoll import grinder results/*-replay-access/grinder-0-data.log

    Exit codes: 0 everything was read; 1 imported, but The Grinder was killed while it wrote, or lines could
    not be read; 2 a file that is not a data log.
    """  # noqa: D301 \b is click's: keep these lines as they are
    from plimsoll.analysis.exchange.grinder import import_grinder, read_test_names
    from plimsoll.analysis.exchange.importing import print_imports

    called = {} if names is None else read_test_names(names)
    with progress_bar("reading", "bytes", is_shown(progress)) as advance:
        imported = import_grinder(
            files, out, scenario=scenario, target=target, names=called, composite=composite, progress=advance
        )
    print_imports([imported], as_json)


@import_.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@run_options("k6")
@click.option(
    "--timeout-s",
    metavar="NUMBER",
    default=60.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True),
    help="The time-out of the script's requests: what one counts that timed out without a connection.",
)
@json_option
@progress_option
def k6(
    files: tuple[Path, ...],
    out: Path,
    scenario: str,
    target: str | None,
    timeout_s: float,
    as_json: bool,
    progress: bool | None,
) -> None:
    """Import what `k6 run --out json=FILE` or `--out csv=FILE` wrote, gzip or not: a run directory each.

    \b
    Examples:
        plimsoll import k6 result.json.gz --target http://127.0.0.1:8080
        plimsoll report results/latest

    Exit codes: 0 everything was read; 1 imported, but k6 was killed while it wrote, or lines could not be
    read; 2 a file without samples of k6.
    """  # noqa: D301 \b is click's: keep these lines as they are
    from plimsoll.analysis.exchange.importing import check_files, count_bytes, print_imports
    from plimsoll.analysis.exchange.k6 import import_k6

    check_files(files)
    with progress_bar("reading", "bytes", is_shown(progress)) as show:
        advance = count_bytes(files, 1, show)
        print_imports(
            (
                import_k6(path, out, scenario=scenario, target=target, timeout_s=timeout_s, advance=advance)
                for path in files
            ),
            as_json,
        )


@import_.command()
@click.argument("files", metavar="FILE|PREFIX...", nargs=-1, type=click.Path(path_type=Path))
@run_options("locust")
@click.option("--listener", is_flag=True, help="Print the listener that records every request, and exit.")
@json_option
@progress_option
def locust(
    files: tuple[Path, ...],
    out: Path,
    scenario: str,
    target: str | None,
    listener: bool,
    as_json: bool,
    progress: bool | None,
) -> None:
    """Import the requests of a Locust test, or a summary of its CSV files.

    \b
    Examples:
        plimsoll import locust --listener > plimsoll_listener.py
        locust -f locustfile.py,plimsoll_listener.py --headless -u 5 -t 3s -H http://127.0.0.1:8080
        plimsoll import locust locust-requests-*.jsonl --target http://127.0.0.1:8080
        plimsoll import locust load                 # load_stats.csv, load_failures.csv …

    The files of the listener (of all processes of one test, gzip or not) become a run directory. Of Locust's
    own CSV files (`--csv PREFIX`) that cannot be made: they become imported_summary.json.

    Exit codes: 0 everything was read; 1 imported, but Locust was killed while it wrote, or lines could not be
    read; 2 a file that Locust did not write.
    """  # noqa: D301 \b is click's: keep these lines as they are
    from plimsoll.analysis.exchange.importing import ImportingError, print_imports
    from plimsoll.analysis.exchange.locust import (
        LISTENER,
        import_locust,
        prefix_of,
        read_tables,
        summarise_tables,
    )

    if listener:
        click.echo(LISTENER.read_text(encoding="utf-8"), nl=False)
        return
    if not files:
        raise click.UsageError("Missing argument 'FILE|PREFIX...'.")
    prefixes = {prefix for path in files if (prefix := prefix_of(path))}
    if prefixes:
        if len(prefixes) > 1 or not all(map(prefix_of, files)):
            raise ImportingError(
                "Locust's CSV files are of one test: give one PREFIX, and nothing else with it"
            )
        summarise_tables(read_tables(prefixes.pop()), out, scenario, as_json)
        return
    with progress_bar("reading", "bytes", is_shown(progress)) as advance:
        imported = import_locust(files, out, scenario=scenario, target=target, progress=advance)
    print_imports([imported], as_json)


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--to",
    metavar="FORMAT",
    required=True,
    type=click.Choice(list(FORMATS)),
    help="; ".join(f"{name}: {each.holds}" for name, each in FORMATS.items()) + ".",
)
@out_option("FILE", "File to write; replaced whole. - is standard output.", required=True)
@json_option
@progress_option
@click.pass_context
def export(
    ctx: click.Context, directory: Path, to: str, out: Path, as_json: bool, progress: bool | None
) -> None:
    """Write the records or the figures of one run directory as a file for other programs.

    \b
    Examples:
        plimsoll export results/latest --to csv --out requests.csv
        plimsoll export results/latest --to parquet --out requests.parquet
        plimsoll export results/latest --to hdr --out latency.hlog
        plimsoll export results/latest --to prometheus --out plimsoll.prom

    Exit codes: 0 written; 1 written, but of a run that did not come to its end; 2 nothing was written.
    """  # noqa: D301 \b is click's: keep these lines as they are
    from plimsoll.analysis.exchange.exporting import export_run

    if as_json and out == STDOUT:
        raise click.UsageError("--json and --out - would both write to standard output.")
    with progress_bar("writing", "requests", is_shown(progress)) as advance:
        exported = export_run(directory, to, out, advance)
    if as_json:
        click.echo(json.dumps(exported.as_json(), indent=2))
    else:
        for line in exported.lines():
            click.echo(printable(line, 4096), err=out == STDOUT)
    ctx.exit(0 if exported.is_whole else 1)


@click.command()
@click.argument("shards", metavar="SHARD...", nargs=-1, required=True, type=click.Path(path_type=Path))
@out_option("DIR", "The run directory to write.", required=True)
@json_option
@progress_option
def merge(shards: tuple[Path, ...], out: Path, as_json: bool, progress: bool | None) -> None:
    """Merge the run directories of several processes or machines into one.

    \b
    Examples:
        plimsoll merge shards --out results/merged
        plimsoll merge host1/0 host2/1 host3/2 host4/3 --out results/four-hosts
        plimsoll merge shards --out results/again --json | jq .instances

    A folder stands for the shards in it. The percentiles are those of all requests together. The run is
    complete only if every shard is and none is missing: those that are not are named, and what they had
    left to send is counted.

    Exit codes: 0 the run is complete, within its limits; 1 merged, but incomplete or over a limit; 2 nothing
    was merged; 3 it is complete, but a limit could not be judged.
    """  # noqa: D301 \b is click's: keep these lines as they are
    from plimsoll.analysis.evidence.summary import outcome_lines
    from plimsoll.analysis.exchange.merge import MOST_SAID, instance_lines, merge_shards
    from plimsoll.rundir.facts import Instance, LimitVerdict
    from plimsoll.rundir.read import read_json

    with progress_bar("merging", "records read", is_shown(progress)) as advance:
        run = merge_shards(shards, out, advance)
    summary = read_json(out / SUMMARY_FILE)
    if as_json:
        click.echo(json.dumps(summary))
    else:
        instances = [Instance.model_validate(one) for one in summary["instances"]]
        click.echo("\n".join([*instance_lines(instances), "", *outcome_lines(out)]))
    facts = run.facts
    said = [f"{one.level}: {one.text}" for one in (facts.merged.says if facts.merged else [])]
    if facts.generator_limited_reason:
        said.append(f"bad: limited by its generator: {facts.generator_limited_reason}")
    for text in said:
        click.echo(printable(text, MOST_SAID), err=as_json)
    limits = [LimitVerdict.model_validate(one) for one in summary.get("limits", [])]
    for one in limits:
        click.echo(printable(f"limit {one.limit}: {one.outcome}: {one.says}", 1000), err=as_json)
    outcomes = {one.outcome for one in limits}
    if facts.status != "complete" or "exceeded" in outcomes:
        raise SystemExit(1)
    raise SystemExit(3 if "not judged" in outcomes else 0)
