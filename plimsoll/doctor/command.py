"""`plimsoll doctor`: what is here, what is missing for which command, and is this machine fit for load."""

import json
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

import click

from plimsoll import __version__
from plimsoll.common.hostile import printable
from plimsoll.doctor.machine import Check, checks
from plimsoll.doctor.programs import Lack, lacks, table
from plimsoll.doctor.uses import USES

_ALWAYS = "replay"


@click.command()
@click.option(
    "--for",
    "wanted",
    metavar="USE",
    multiple=True,
    type=click.Choice(list(USES)),
    help=f"A use that must be possible here, besides replays: {', '.join(USES)}. May be repeated.",
)
@click.option(
    "--measure-s",
    metavar="NUMBER",
    default=5,
    show_default=True,
    type=click.IntRange(0, 3600),
    help="Seconds to measure how late the machine wakes a sender, and what a hypervisor takes; 0: neither.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on standard output.")
@click.pass_context
def doctor(ctx: click.Context, wanted: tuple[str, ...], measure_s: int, as_json: bool) -> None:
    """Say what is here, what is missing for which command, and whether this machine is fit to generate load.

    It changes nothing and sends nothing. Packages are Debian's.

    \b
    Examples:
        plimsoll doctor --for site --for browser
        plimsoll doctor --measure-s 60 --json

    Exit codes: 0 this machine can replay, and do what --for names; 1 it cannot, or wakes senders too late;
    2 wrong usage.
    """  # noqa: D301 \b is click's: keep these lines as they are
    needed = table()
    lacking = {name: lacks(name, needed) for name in USES}
    found = list(checks(measure_s))
    ready = not any(lacking[name] for name in {_ALWAYS, *wanted}) and all(
        check.verdict != "bad" for check in found
    )
    if as_json:
        click.echo(json.dumps(_data(lacking, found, ready), indent=2))
    else:
        for line in [*_machine(found), "", *_uses(lacking), "", _answer(lacking, found, wanted)]:
            click.echo(printable(line, 2000))
    ctx.exit(0 if ready else 1)


def _data(lacking: dict[str, list[Lack]], found: Sequence[Check], ready: bool) -> dict[str, object]:
    uses = [
        {"use": name, "what": USES[name].what, "missing": [asdict(one) for one in lack]}
        for name, lack in lacking.items()
    ]
    return {
        "version": __version__,
        "python": platform.python_version(),
        "ready": ready,
        "machine": [asdict(check) | {"remedy": check.remedy or None} for check in found],
        "uses": uses,
        "packages": _packages(lacking.values()),
    }


def _machine(found: Sequence[Check]) -> Iterator[str]:
    yield f"plimsoll {__version__}, Python {platform.python_version()}. This machine as a generator of load:"
    for check in found:
        mark = {"good": " ", "unknown": "?", "caution": "!", "bad": "x"}[check.verdict]
        yield f"  {mark} {check.name:<11} {check.value}"
        if check.remedy:
            yield f"{'':16}{check.remedy}"


def _uses(lacking: dict[str, list[Lack]]) -> Iterator[str]:
    yield "Here is all for: " + (
        ", ".join(name for name, lack in lacking.items() if not lack) or "nothing yet"
    )
    if any(lacking.values()):
        yield "Missing:"
    for name, lack in lacking.items():
        if lack:
            yield f"  {name:<13} {USES[name].what}"
            yield from (f"{'':16}{one.what}: {one.get}" for one in lack)
    if packages := _packages(lacking.values()):
        yield f"All of these: apt-get install {' '.join(packages)}"


def _answer(lacking: dict[str, list[Lack]], found: Sequence[Check], wanted: Sequence[str]) -> str:
    asked = [_ALWAYS, *(name for name in dict.fromkeys(wanted) if name != _ALWAYS)]
    missing = [name for name in asked if lacking[name]]
    bad = [check.name for check in found if check.verdict == "bad"]
    if missing:
        answer = f"Not ready: something is missing for {', '.join(missing)}."
    else:
        answer = f"Ready for {', '.join(asked)}."
    return f"{answer} This machine is not fit to generate load: {', '.join(bad)}." if bad else answer


def _packages(lacking: Iterable[list[Lack]]) -> list[str]:
    return sorted({one.package for lack in lacking for one in lack if one.package})
