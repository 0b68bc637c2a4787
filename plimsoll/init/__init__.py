"""`plimsoll init`: five questions, and the lab.yml and gates.yml that follow from the answers."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from plimsoll.common.commands import json_option, out_option
from plimsoll.common.errors import OutputError, SettingsError
from plimsoll.common.hostile import printable
from plimsoll.common.units import parse_duration_s

Answer = TypeVar("Answer")
LIMITS = "10% errors=0.1%"
DURATION = "2h"

_QUESTIONS = {
    "--log": "Which log? A path, or a pattern such as '/var/log/nginx/access.log*'; it is only read.",
    "--site": "Which site? `own`: the WordPress of make site, which the lab clones onto each disk. Or the "
    "base URL of a clone that exists on each disk: http://10.0.0.5 http://10.0.0.6",
    "--disks": "Which disks? The present one first, each as NAME=/folder/on/it: sata=/rust/lab "
    "nvme=/tank/lab. For existing clones the name alone is enough.",
    "--duration": "How long may it take in all? For example 45m, 2h or 10h.",
    "--limits": "Which limits? How much slower p99.9 may become, how slow it may be, how many more "
    "requests may fail: 10% 800ms errors=0.1%",
}


@click.command()
@click.option("--log", metavar="LOG", help=_QUESTIONS["--log"])
@click.option("--site", metavar="SITE", help=_QUESTIONS["--site"])
@click.option("--disks", metavar="DISKS", help=_QUESTIONS["--disks"])
@click.option("--duration", metavar="TIME", help=_QUESTIONS["--duration"])
@click.option("--limits", metavar="LIMITS", help=_QUESTIONS["--limits"])
@click.option("--name", default="move", show_default=True, help="Name of the experiment.")
@out_option(
    "DIR",
    "Folder to write both files into.",
    default=".",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
)
@click.option("--no-probe", is_flag=True, help="Do not check whether log, site and folders exist.")
@json_option
def init(
    log: str | None,
    site: str | None,
    disks: str | None,
    duration: str | None,
    limits: str | None,
    name: str,
    out: Path,
    no_probe: bool,
    as_json: bool,
) -> None:
    """Ask five questions, and write a lab.yml and a gates.yml with comments.

    \b
    Examples:
        plimsoll init --log examples/access.log --site 'http://127.0.0.1:8080 http://127.0.0.1:8081' \\
            --disks 'old new' --duration 2h --limits '10% 800ms'
        plimsoll init --log examples/access.log --site own --disks 'sata=/rust/lab nvme=/tank/lab' \\
            --duration 10h --limits 10% --out build --no-probe

    `plimsoll check` accepts what it writes. Each answer is also a flag; questions without a flag are
    asked on the terminal. Existing files are never overwritten: nothing is then asked or written.

    Exit codes: 0 both files are written; 2 an answer is wrong, or a file exists.
    """  # noqa: D301 \b is click's: keep these lines as they are
    from plimsoll.init.answers import (
        OWN,
        Limits,
        Log,
        Site,
        parse_limits,
        parse_name,
        read_disks,
        read_log,
        read_site,
    )
    from plimsoll.init.experiment import Answers, Lengths, estimate_s, lengths, write_experiment

    _refuse_existing(out)
    asker = _Asker(
        {"--log": log, "--site": site, "--disks": disks, "--duration": duration, "--limits": limits}
    )
    name_answer = asker.read_flag("--name", name, parse_name)
    log_answer = asker.ask("--log", lambda text: read_log(text, no_probe))
    site_answer = asker.ask("--site", lambda text: read_site(text, no_probe), OWN)
    known = site_answer or Site()
    disks_answer = (
        asker.ask("--disks", lambda text: read_disks(text, known, no_probe)) if site_answer else None
    )
    partial = log_answer and disks_answer and name_answer

    def make_answers(lasts: float, limits: Limits) -> Answers:
        assert partial and disks_answer  # noqa: S101 called only with all of them
        return Answers(name_answer or "", log_answer or Log(""), known, *disks_answer, lasts, limits)

    def find_fit(text: str) -> tuple[float, Lengths | None]:
        lasts = parse_duration_s(text)
        if not partial:
            return lasts, None
        expected = make_answers(lasts, Limits(1.1))
        return lasts, lengths(lasts, lambda each: estimate_s(expected, each))

    duration_answer = asker.ask("--duration", find_fit, DURATION)
    limits_answer = asker.ask("--limits", parse_limits, LIMITS)
    asker.refuse_wrong()
    assert duration_answer and duration_answer[1] and limits_answer  # noqa: S101 refused otherwise
    write_experiment(out, make_answers(duration_answer[0], limits_answer), duration_answer[1], as_json)


class _Asker:
    """Takes answers from flags, asks for the others on a terminal, and collects what is wrong."""

    def __init__(self, flags: dict[str, str | None]) -> None:
        self._flags = flags
        self._problems: list[str] = []

    def read_flag(self, flag: str, text: str, read: Callable[[str], Answer]) -> Answer | None:
        """Return what a flag says, or None if it is wrong."""
        try:
            return read(text)
        except ValueError as error:
            self._problems.append(f"{flag}: {error}")
            return None

    def ask(self, flag: str, read: Callable[[str], Answer], default: str | None = None) -> Answer | None:
        """Return the answer to a question; None if a flag's is wrong, or missing without a terminal."""
        text = self._flags[flag]
        if text is not None:
            return self.read_flag(flag, text, read)
        if self._problems:  # the command will be refused: ask nothing more
            return None
        if not sys.stdin.isatty():
            self._problems.append(
                f"{flag} is missing, and there is no terminal to ask on: {_QUESTIONS[flag]}"
            )
            return None
        return _ask(flag, read, default)

    def refuse_wrong(self) -> None:
        """Raise SettingsError with all that is wrong."""
        missing = [
            f"{flag} is missing, and there is no terminal to ask on: {_QUESTIONS[flag]}"
            for flag, text in self._flags.items()
            if text is None and not sys.stdin.isatty()
        ]
        if self._problems:
            raise SettingsError("\n".join(dict.fromkeys([*self._problems, *missing])))


def _ask(flag: str, read: Callable[[str], Answer], default: str | None) -> Answer:
    number = list(_QUESTIONS).index(flag) + 1
    click.echo(f"\n{number}/{len(_QUESTIONS)} {_QUESTIONS[flag]}", err=True)
    while True:
        text: str = click.prompt(flag.removeprefix("--"), default=default, err=True)
        try:
            return read(text)
        except ValueError as error:
            click.echo(printable(str(error), 2000), err=True)


def _refuse_existing(folder: Path) -> None:
    from plimsoll.init.experiment import GATES_FILE, LAB_FILE

    there = [
        str(folder / name)
        for name in (LAB_FILE, GATES_FILE)
        if (folder / name).is_symlink() or (folder / name).exists()
    ]
    if there:
        is_there = "exists" if len(there) == 1 else "exist"
        raise OutputError(
            f"{' and '.join(there)} {is_there}, and nothing is overwritten: choose another --out"
        )
