"""`plimsoll init`: asks five questions, and writes lab.yml and gates.yml. Never overwrites."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from plimsoll.analysis.comparing import gates
from plimsoll.common.errors import OutputError, SettingsError
from plimsoll.common.files import open_replacement
from plimsoll.common.hostile import printable
from plimsoll.common.units import counted, seconds
from plimsoll.common.validation import parse_model
from plimsoll.init import here
from plimsoll.init.answers import OWN, Disk, Limits, Site, disks_of, duration_of, limits_of, name_of, site_of
from plimsoll.init.experiment import Answers, Lengths, lengths
from plimsoll.init.texts import gates_text, lab_text
from plimsoll.lab.experiment import settings
from plimsoll.lab.experiment.checked import all_problems
from plimsoll.lab.experiment.plan import lasts_s

Answer = TypeVar("Answer")
LAB, GATES = "lab.yml", "gates.yml"
LIMITS = "10% errors=0.1%"
DURATION = "2h"

_QUESTIONS = {
    "--log": "Which log? A path, or a pattern such as '/var/log/nginx/access.log*'; it is only read.",
    "--site": f"Which site? `{OWN}`: the WordPress of make site, which the lab clones onto each disk. Or the "
    "base URL of a clone that exists on each disk: http://10.0.0.5 http://10.0.0.6",
    "--disks": "Which disks? The one that there is first, each as NAME=/folder/on/it: sata=/rust/lab "
    "nvme=/tank/lab. Of clones that exist, the name alone will do.",
    "--duration": "How long may it take in all? Such as 45m, 2h or 10h.",
    "--limits": "By what limits? How much slower p99.9 may become, how slow it may be, how many more "
    "requests may fail: 10% 800ms errors=0.1%",
}


@click.command()
@click.option("--log", metavar="LOG", help=_QUESTIONS["--log"])
@click.option("--site", metavar="SITE", help=_QUESTIONS["--site"])
@click.option("--disks", metavar="DISKS", help=_QUESTIONS["--disks"])
@click.option("--duration", metavar="TIME", help=_QUESTIONS["--duration"])
@click.option("--limits", metavar="LIMITS", help=_QUESTIONS["--limits"])
@click.option("--name", default="move", show_default=True, help="Name of the experiment.")
@click.option(
    "--folder",
    metavar="DIR",
    default=".",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write both files into.",
)
@click.option("--no-probe", is_flag=True, help="Do not look whether log, site and folders are there.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON on standard output.")
def init(
    log: str | None,
    site: str | None,
    disks: str | None,
    duration: str | None,
    limits: str | None,
    name: str,
    folder: Path,
    no_probe: bool,
    as_json: bool,
) -> None:
    """Ask five questions, and write a lab.yml and a gates.yml with comments.

    `plimsoll lab check` accepts what it writes. Each answer is also a flag: what no flag answers is asked on
    the terminal. Files that exist stay as they are: then nothing is asked, and nothing written.

    \b
    Examples:
        plimsoll init --site own --disks 'sata=/rust/lab nvme=/tank/lab'
        plimsoll init --log access.log --site 'http://10.0.0.5 http://10.0.0.6' --disks 'sata nvme' \\
            --duration 2h --limits '10% 800ms'

    Exit codes: 0 both files are written; 2 an answer is wrong, or a file exists.
    """  # noqa: D301 \b is click's: keep these lines as they are
    _refuse_existing(folder)
    asker = _Asker(
        {"--log": log, "--site": site, "--disks": disks, "--duration": duration, "--limits": limits}
    )
    called = asker.given("--name", name, name_of)
    told_log = asker.answer("--log", lambda text: _log(text, no_probe))
    told_site = asker.answer("--site", lambda text: _site(text, no_probe), OWN)
    known = told_site or Site()
    told_disks = asker.answer("--disks", lambda text: _disks(text, known, no_probe)) if told_site else None
    partial = told_log and told_disks and called

    def answers(lasts: float, limits: Limits) -> Answers:
        assert partial and told_disks  # noqa: S101 only called then
        return Answers(called or "", told_log or here.Log(""), known, *told_disks, lasts, limits)

    def fitting(text: str) -> tuple[float, Lengths | None]:
        lasts = duration_of(text)
        if not partial:
            return lasts, None
        told = answers(lasts, Limits(1.1))
        return lasts, lengths(lasts, lambda each: _about_s(told, each))

    told_duration = asker.answer("--duration", fitting, DURATION)
    told_limits = asker.answer("--limits", limits_of, LIMITS)
    asker.refuse()
    assert told_duration and told_duration[1] and told_limits  # noqa: S101 refused otherwise
    _write(folder, answers(told_duration[0], told_limits), told_duration[1], as_json)


class _Asker:
    """Takes answers from flags, and asks for the others where there is a terminal; collects what is wrong."""

    def __init__(self, flags: dict[str, str | None]) -> None:
        self._flags = flags
        self._problems: list[str] = []

    def given(self, flag: str, text: str, read: Callable[[str], Answer]) -> Answer | None:
        """Return what a flag says, None where that is wrong."""
        try:
            return read(text)
        except ValueError as error:
            self._problems.append(f"{flag}: {error}")
            return None

    def answer(self, flag: str, read: Callable[[str], Answer], default: str | None = None) -> Answer | None:
        """Return the answer to a question, None where a flag's is wrong, or missing without a terminal."""
        text = self._flags[flag]
        if text is not None:
            return self.given(flag, text, read)
        if self._problems:  # the command will be refused: ask nothing more
            return None
        if not _is_terminal():
            self._problems.append(
                f"{flag} is missing, and there is no terminal to ask on: {_QUESTIONS[flag]}"
            )
            return None
        return _asked(flag, read, default)

    def refuse(self) -> None:
        """Raise SettingsError with all that is wrong."""
        missing = [
            f"{flag} is missing, and there is no terminal to ask on: {_QUESTIONS[flag]}"
            for flag, text in self._flags.items()
            if text is None and not _is_terminal()
        ]
        if self._problems:
            raise SettingsError("\n".join(dict.fromkeys([*self._problems, *missing])))


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _asked(flag: str, read: Callable[[str], Answer], default: str | None) -> Answer:
    """Ask until the answer is right."""
    number = list(_QUESTIONS).index(flag) + 1
    click.echo(f"\n{number}/{len(_QUESTIONS)} {_QUESTIONS[flag]}", err=True)
    while True:
        text: str = click.prompt(flag.removeprefix("--"), default=default, err=True)
        try:
            return read(text)
        except ValueError as error:
            click.echo(printable(str(error), 2000), err=True)


def _log(text: str, no_probe: bool) -> here.Log:
    if not text.strip():
        raise ValueError("say which log")
    return here.Log(text) if no_probe else here.log_at(text)


def _site(text: str, no_probe: bool) -> Site:
    found = site_of(text)
    if not no_probe and (why := [says for target in found.targets if (says := here.why_no_site(target))]):
        raise ValueError("; ".join(why))
    return found


def _disks(text: str, site: Site, no_probe: bool) -> tuple[tuple[Disk, ...], tuple[here.Under, ...]]:
    found = disks_of(text, site)
    return found, tuple(here.Under() if no_probe else here.under(disk) for disk in found)


def _about_s(told: Answers, each: Lengths) -> float:
    """Return about how long an experiment takes, as `plimsoll lab check` says it."""
    text = lab_text(told, each)
    return lasts_s(parse_model(text, LAB, settings.Lab, settings.MANUAL, settings.problems)) or 0.0


def _refuse_existing(folder: Path) -> None:
    there = [
        str(folder / name)
        for name in (LAB, GATES)
        if (folder / name).is_symlink() or (folder / name).exists()
    ]
    if there:
        is_there = "exists" if len(there) == 1 else "exist"
        raise OutputError(
            f"{' and '.join(there)} {is_there}, and nothing is overwritten: choose another --folder"
        )


def _write(folder: Path, told: Answers, found: Lengths, as_json: bool) -> None:
    lab, limits = lab_text(told, found), gates_text(told, found)
    read = parse_model(lab, LAB, settings.Lab, settings.MANUAL, all_problems)
    parse_model(limits, GATES, gates.Gates, gates.MANUAL, gates.problems)
    _write_new(folder / GATES, limits)
    try:
        _write_new(folder / LAB, lab)
    except OutputError:
        (folder / GATES).unlink()  # half of two helps nobody
        raise
    about_s = lasts_s(read)
    if as_json:
        written = {"lab": str(folder / LAB), "gates": str(folder / GATES), "about_s": about_s}
        click.echo(json.dumps(written | {"runs": len(told.disks) * found.repeats}, indent=2))
        return
    runs = counted(len(told.disks) * found.repeats, "run")
    click.echo(
        f"Wrote {folder / LAB} and {folder / GATES}: {runs}, about {seconds(about_s or 0)}. Read them, then:"
    )
    click.echo(f"  plimsoll lab check {folder / LAB}")
    click.echo(f"  plimsoll run {folder / LAB}")
    names = [disk.name for disk in told.disks]
    sides = f" --baseline {names[0]} --candidate {names[1]}" if len(names) > 1 else ""
    click.echo(f"  plimsoll compare results/{told.name}-TIME{sides} --gates {folder / GATES}")


def _write_new(path: Path, text: str) -> None:
    try:
        with open_replacement(path, only_new=True, parents=True) as file:
            file.write(text.encode())
    except FileExistsError:
        raise OutputError(f"{path} exists, and nothing is overwritten: choose another --folder") from None
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}; choose another --folder") from None
