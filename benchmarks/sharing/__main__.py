"""`python -m benchmarks.sharing LOG...`."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from benchmarks.sharing.arrivals import copied, read_logs
from benchmarks.sharing.simulate import Sharing, simulate
from plimsoll.common.errors import PlimsollError
from plimsoll.common.hostile import printable

_REPLAY = Path(__file__).parents[2] / "bin" / "replay"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@click.option(
    "--instances",
    metavar="N",
    multiple=True,
    type=click.IntRange(1, 4096),
    default=(2, 4, 8, 16, 64),
    help="How many instances share the log. May be repeated. Default: 2, 4, 8, 16 and 64.",
)
@click.option(
    "--utilisation",
    metavar="U",
    multiple=True,
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=(0.3, 0.5, 0.8),
    help="How busy each would be, were all alike. May be repeated. Default: 0.3, 0.5 and 0.8.",
)
@click.option(
    "--request-us",
    metavar="US",
    type=click.FloatRange(0, min_open=True),
    default=40.0,
    show_default=True,
    help="Microseconds that an instance needs for a request.",
)
@click.option(
    "--copies",
    metavar="K",
    type=click.IntRange(1, 10_000),
    default=1,
    show_default=True,
    help="A site so many times as busy: K such logs at once, each of other clients.",
)
@click.option("--format", "log_format", metavar="F", help="As of bin/replay parse. Default: detected.")
@click.option("--seed", default=1, show_default=True, help="Of the instants within a logged second.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as one JSON object.")
def main(
    logs: tuple[str, ...],
    instances: tuple[int, ...],
    utilisation: tuple[float, ...],
    request_us: float,
    copies: int,
    log_format: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Tell how unevenly instances share the clients of access logs, and what that does to their lag.

    Nothing is sent. Exit codes: 0 done; 2 wrong usage or logs that cannot be read.

    \b
    Example:
        python -m benchmarks.sharing access.log --instances 4 --instances 8 --copies 100
    """
    try:
        arrivals = copied(read_logs(_REPLAY, logs, log_format, seed), copies, seed)
        sharing = simulate(arrivals, instances, utilisation, request_us)
    except PlimsollError as error:
        for line in str(error).splitlines():
            click.echo(f"Error: {printable(line, 2000)}", err=True)
        raise SystemExit(2) from None
    click.echo(json.dumps(asdict(sharing)) if as_json else "\n".join(table_lines(sharing)))


def table_lines(sharing: Sharing) -> Iterator[str]:
    """Write the answer for people."""
    crowd = sharing.crowd
    yield (
        f"{sharing.requests:,} requests in {sharing.span_s:,.0f} s by {crowd.clients:,} clients, "
        f"the largest {crowd.largest:.1%}; as uneven as {crowd.effective:,.1f} clients of one size"
    )
    yield ""
    yield "instances  max/mean  busiest second (even)   utilisation    speed  lag p99.9 (even), ms"
    for split in sharing.splits:
        even = split.evenness
        second = f"{_percent(even.busiest_second_p99)} ({_percent(even.ideal_second_p99)})"
        first = f"{split.instances:9}  {even.largest_to_mean:8.2f}  {second:>21}"
        for lag in split.lag:
            worst = "overloaded" if lag.busiest_utilisation >= 1 else _ms(lag.worst_ms)
            yield f"{first}  {lag.utilisation:12.2f}  {lag.speed:7,.0f}  {worst} ({_ms(lag.even_ms)})"
            first = " " * len(first)


def _percent(part: float | None) -> str:
    return "–" if part is None else f"{part:.0%}"


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.sharing")
