"""`plimsoll import locust`."""

import json
from datetime import UTC, datetime
from pathlib import Path

import click

from plimsoll.analysis.exchange.lines import ImportingError
from plimsoll.analysis.exchange.locust import import_locust
from plimsoll.analysis.exchange.locust_tables import Tables, prefix_of, read_tables
from plimsoll.analysis.exchange.options import json_option, out_option, scenario_option, target_option
from plimsoll.common.files import replace_json
from plimsoll.common.hostile import printable
from plimsoll.common.progress import is_shown, progress_bar, progress_option
from plimsoll.common.units import ABSENT, count, plain_ms
from plimsoll.rundir.find import directory_name, new_directory

_LISTENER = Path(__file__).with_name("locust_listener.py")
_SAYS = (
    "No run directory: Locust's CSV files hold averages and rounded percentiles, no requests. "
    "To have every request next time: plimsoll import locust --listener > plimsoll_listener.py"
)


@click.command()
@click.argument("files", metavar="FILE|PREFIX...", nargs=-1, type=click.Path(path_type=Path))
@out_option
@scenario_option("locust")
@target_option
@click.option("--listener", is_flag=True, help="Print the listener that writes every request down, and end.")
@json_option
@progress_option
@click.pass_context
def locust(
    ctx: click.Context,
    files: tuple[Path, ...],
    out: Path,
    scenario: str,
    target: str | None,
    listener: bool,
    as_json: bool,
    progress: bool | None,
) -> None:
    """Import the requests of a Locust test, or a summary of its CSV files.

    The files of the listener (of all processes of one test, gzip or not) become a run directory. Of Locust's
    own CSV files (`--csv PREFIX`) that cannot be made: they become imported_summary.json.

    \b
    Examples:
        plimsoll import locust --listener > plimsoll_listener.py
        locust -f locustfile.py,plimsoll_listener.py --headless -u 50 -t 5m -H http://10.0.0.5
        plimsoll import locust locust-requests-*.jsonl --target http://10.0.0.5
        plimsoll import locust load                 # load_stats.csv, load_failures.csv …

    Exit codes: 0 everything was read; 1 imported, but Locust was killed while it wrote, or lines could not be
    read; 2 a file that is nothing of Locust.
    """  # noqa: D301 \b is click's: keep these lines as they are
    if listener:
        click.echo(_LISTENER.read_text(encoding="utf-8"), nl=False)
        return
    if not files:
        raise click.UsageError("Missing argument 'FILE|PREFIX...'.", ctx)
    prefixes = {prefix for path in files if (prefix := prefix_of(path))}
    if prefixes:
        if len(prefixes) > 1 or not all(map(prefix_of, files)):
            raise ImportingError(
                "Locust's CSV files are of one test: give one PREFIX, and nothing else with it"
            )
        _summarise(read_tables(prefixes.pop()), out, scenario, as_json)
        return
    with progress_bar("reading", "bytes", is_shown(progress)) as advance:
        imported = import_locust(files, out, scenario=scenario, target=target, progress=advance)
    if as_json:
        click.echo(json.dumps({"format": 1, "runs": [imported.as_json()]}, indent=2))
    else:
        click.echo("\n".join(printable(line, 4096) for line in imported.lines()))
    ctx.exit(0 if imported.whole else 1)


def _summarise(tables: Tables, out: Path, scenario: str, as_json: bool) -> None:
    """Write imported_summary.json into a folder of its own, which is no run: `latest` stays where it is."""
    directory = new_directory(out, directory_name(tables.started_at or datetime.now(UTC), scenario))
    path = directory / "imported_summary.json"
    replace_json(path, tables.as_json())
    if as_json:
        summaries = [{"source": tables.prefix, "summary": str(path)}]
        click.echo(json.dumps({"format": 1, "runs": [], "summaries": summaries}, indent=2))
        return
    click.echo(f"{'requests':>10} {'errors':>8} {'mean ms':>10} {'max ms':>10}  name")
    for row in tables.names:
        figures = (_ms(row["mean_ms"]), _ms(row["max_ms"]))
        counts = (_whole(row["requests"]), _whole(row["errors"]))
        name = printable(f"{row['method']} {row['name']}".strip(), 80)
        click.echo(f"{counts[0]:>10} {counts[1]:>8} {figures[0]:>10} {figures[1]:>10}  {name}")
    click.echo(f"{printable(str(path), 4096)}\n{_SAYS}")


def _ms(value: object) -> str:
    return plain_ms(value) if isinstance(value, float) else ABSENT


def _whole(value: object) -> str:
    return count(value if isinstance(value, int) else None)
