"""The experiment that follows from the answers: lengths of runs, and the two files that describe it."""

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from plimsoll.analysis.compare import gates
from plimsoll.common.errors import OutputError
from plimsoll.common.files import open_replacement
from plimsoll.common.units import counted, seconds
from plimsoll.common.validation import parse_model
from plimsoll.init.answers import Disk, Limits, Log, Site, StorageBelow
from plimsoll.lab.experiment.labfile import MANUAL, Lab
from plimsoll.lab.experiment.plan import expected_s
from plimsoll.lab.experiment.problems import all_problems, key_problems

_FEWEST_REPEATS, _MOST_REPEATS = 4, 20
_SHORTEST_RUN_S, _LONGEST_RUN_S = 60, 900
_PARTS = 4  # a run is a quarter before the saturator, two during it, a quarter after
_FEWEST = {"p99.9": 1000, "p99": 100}  # requests that a percentile takes
_PLAIN = re.compile(r"[A-Za-z0-9/][A-Za-z0-9/._-]*")
_NO_TEXT = re.compile(r"[0-9.+-]+|(?i:true|false|yes|no|on|off|null)|.*:")
_FIO_RATE = "50M"
LAB_FILE, GATES_FILE = "lab.yml", "gates.yml"


@dataclass(frozen=True)
class Answers:
    """The five answers, and what is known of what they name."""

    name: str
    log: Log
    site: Site
    disks: tuple[Disk, ...]
    below: tuple[StorageBelow, ...]  # what lies under each disk's folder
    lasts_s: float
    limits: Limits

    @property
    def saturator(self) -> str | None:
        """The kind of saturator for all backends alike; None if their folders are unknown."""
        if any(disk.path is None for disk in self.disks):
            return None
        return "zfs-send" if all(under.dataset for under in self.below) else "fio"


@dataclass(frozen=True)
class Lengths:
    """How often each backend is measured, and how long each run is, after the warm-up."""

    repeats: int
    run_s: int

    @property
    def part_s(self) -> int:
        """A quarter of a run."""
        return self.run_s // _PARTS


def lengths(lasts_s: float, about_s: Callable[[Lengths], float]) -> Lengths:
    """Return the lengths that fill `lasts_s`; `about_s` says how long an experiment takes. Raises ValueError.

    Longer runs first, up to a quarter of an hour, then more of them: verdicts gain by runs.
    """
    shortest = Lengths(_FEWEST_REPEATS, _SHORTEST_RUN_S)
    if (least_s := about_s(shortest)) > lasts_s:
        raise ValueError(
            f"{_FEWEST_REPEATS} runs on each disk, the fewest for a verdict, take {seconds(least_s)}: "
            f"give at least {-int(-least_s // 60)}m"
        )
    for repeats in range(_FEWEST_REPEATS, _MOST_REPEATS + 1, 2):
        found = Lengths(repeats, _longest(repeats, lasts_s, about_s))
        if found.run_s < _LONGEST_RUN_S or repeats + 2 > _MOST_REPEATS:
            return found
        if about_s(Lengths(repeats + 2, _LONGEST_RUN_S // 2)) > lasts_s:
            return found
    raise AssertionError("the last number of repeats returns")


def _longest(repeats: int, lasts_s: float, about_s: Callable[[Lengths], float]) -> int:
    """Return the longest run that fits, in whole quarters."""
    shortest, longest = Lengths(repeats, _SHORTEST_RUN_S), Lengths(repeats, _LONGEST_RUN_S)
    low_s, high_s = about_s(shortest), about_s(longest)
    share = (lasts_s - low_s) / (high_s - low_s) if high_s > low_s else 1.0
    run_s = int(shortest.run_s + min(max(share, 0.0), 1.0) * (longest.run_s - shortest.run_s))
    return run_s - run_s % _PARTS


def metric(log: Log, during_s: float) -> str:
    """Return the highest percentile for which a phase of that length has the requests."""
    if log.requests_per_s is None:
        return "p99.9"
    requests = log.requests_per_s * during_s
    return next((name for name, fewest in _FEWEST.items() if requests >= fewest), "p50")


def lab_text(answers: Answers, lengths: Lengths) -> str:
    """Return the text of lab.yml."""
    return "\n".join(
        [
            "# Written by `plimsoll init`; docs/lab.md has every key. Check it: plimsoll check lab.yml",
            "# To complete keys in your editor: plimsoll schema lab.yml > lab.schema.json",
            "# yaml-language-server: $schema=lab.schema.json",
            f"name: {quote_yaml(answers.name)}",
            *_site(answers),
            "",
            "# The first is what there is; the others may replace it. Keys: docs/disks.md, docs/tuning.md.",
            "backends:",
            *(line for number in range(len(answers.disks)) for line in _backend(answers, number)),
            "",
            "scenarios:",
            "  # The log at its own pace, again and again until the run is over. `speed: 2`: twice the pace.",
            "  - scenario: replay",
            f"    options: {{log: {quote_yaml(answers.log.path)}}}",
            "  # Others, such as save-article or visitors: plimsoll scenario list, docs/scenarios.md.",
            "",
            *_saturator(answers),
            *_lengths(answers, lengths),
            "order: blocks # each backend twice, in an order that is drawn, so that no drift favours one",
            "",
        ]
    )


def _site(answers: Answers) -> list[str]:
    if not answers.site.is_own:
        return []
    return [
        (
            "# The WordPress of `make site`: small, medium or large. Only a site larger than the memory "
            "exercises the disks."
        ),
        "site: {size: medium}",
    ]


def _backend(answers: Answers, number: int) -> list[str]:
    disk, below = answers.disks[number], answers.below[number]
    lines = [f"  - name: {quote_yaml(disk.name)}"]
    if disk.path is not None:
        lines.append(f"    disk: {{kind: folder, path: {quote_yaml(disk.path)}{_storage_below(below)}}}")
        if not below.devices:
            lines.append("    # Say which disks lie under it, and they are sampled: devices: [nvme0n1]")
    if answers.site.is_own:
        return [*lines, "    clone: {driver: compose}"]
    lines.append(f"    clone: {{driver: static, target: {quote_yaml(answers.site.targets[number])}}}")
    lines.append("    # It is not restarted between runs; `reset` has the commands for that: docs/lab.md.")
    if disk.path is None:
        lines.append(
            "    # Name its host and disk to have it sampled and saturated: docs/lab.md, docs/disks.md"
        )
    elif answers.saturator:
        lines.append(f"    saturator: {_choose_saturator(answers.saturator, disk, below)}")
    return lines


def _storage_below(below: StorageBelow) -> str:
    said = f", dataset: {quote_yaml(below.dataset)}" if below.dataset else ""
    said += ", btrfs: true" if below.btrfs else ""
    return said + (f", devices: [{', '.join(map(quote_yaml, below.devices))}]" if below.devices else "")


def _choose_saturator(kind: str, disk: Disk, below: StorageBelow) -> str:
    """Return the saturator of a site that exists: the lab does not know where its data lie."""
    if kind == "zfs-send":
        return f"{{kind: zfs-send, dataset: {quote_yaml(below.dataset or '')}}}"
    return f"{{kind: fio, folder: {quote_yaml(disk.path or '')}, rate_bytes_per_s: {_FIO_RATE}}}"


def _saturator(answers: Answers) -> list[str]:
    if answers.saturator is None:
        return [
            "# No saturator: the place of the disks is unknown. What keeps them busy: docs/saturators.md."
        ]
    lines = ["# What keeps the disks busy in the middle of each run: docs/saturators.md."]
    if not answers.site.is_own:
        return [*lines, "# Each backend has its own, above."]
    if answers.saturator == "zfs-send":
        return [*lines, "saturator: {kind: zfs-send}"]
    return [*lines, f"saturator: {{kind: fio, rate_bytes_per_s: {_FIO_RATE}}}"]


def _lengths(answers: Answers, lengths: Lengths) -> list[str]:
    part_s = lengths.part_s
    phases = f"{{before_s: {part_s}, during_s: {2 * part_s}, after_s: {part_s}}}"
    if answers.saturator is None:
        phases = f"{{before_s: 0, during_s: {lengths.run_s}, after_s: 0}}"
    return [
        f"# To fill {seconds(answers.lasts_s)}.",
        f"phases: {phases} # seconds before, during and after the saturator",
        f"repeats: {lengths.repeats} # runs on each backend; a verdict needs at least 4, more decide more",
    ]


def gates_text(answers: Answers, lengths: Lengths) -> str:
    """Return the text of gates.yml."""
    busy = answers.saturator is not None
    during = metric(answers.log, 2 * lengths.part_s)
    whole = metric(answers.log, lengths.run_s)
    lines = [
        "# Written by `plimsoll init`; docs/compare.md has every key. Set limits before you see results.",
        "# To complete keys in your editor: plimsoll schema gates.yml > gates.schema.json",
        "# yaml-language-server: $schema=gates.schema.json",
        "confidence: 0.95 # at most 5 of 100 comparisons pass wrongly, over all gates together",
        "gates:",
    ]
    if busy:
        lines += _gate("the tail while the disks are busy", "during", during, answers.limits)
    lines += _gate(
        "the tail of the whole run", "whole", whole, answers.limits if not busy else _relative(answers.limits)
    )
    return "\n".join(
        [
            *lines,
            f"  # Failures: at most {100 * answers.limits.more_errors:g} % of all requests more than before.",
            "  - scenario: replay",
            "    metric: error share",
            f"    at_most_more: {answers.limits.more_errors:g}",
            "",
        ]
    )


def _relative(limits: Limits) -> Limits | None:
    """Return the limit relative to the baseline, or None: the absolute one is for the worst case."""
    return Limits(limits.ratio, None, limits.more_errors) if limits.ratio else None


def _gate(says: str, phase: str, figure: str, limits: Limits | None) -> list[str]:
    if limits is None:
        return []
    few = "" if figure == "p99.9" else f"; {figure}, as the log has too few requests for p99.9"
    lines = [
        f"  # Response time: {says}{few}.",
        "  - scenario: replay",
        f"    phase: {phase}",
        f"    metric: {figure}",
    ]
    if limits.ratio is not None:
        percent = round(100 * (limits.ratio - 1), 4)
        lines.append(f"    at_most_ratio: {limits.ratio:g} # {percent:g} % slower than the baseline")
    if limits.ms is not None:
        lines.append(f"    at_most_ms: {limits.ms:g}")
    return lines


def quote_yaml(text: str) -> str:
    """Return text as YAML: plain if it cannot be taken for anything else, otherwise in quotes."""
    plain = _PLAIN.fullmatch(text) and not _NO_TEXT.fullmatch(text)
    return text if plain else json.dumps(text, ensure_ascii=False)


def estimate_s(answers: Answers, each: Lengths) -> float:
    """Return about how long an experiment takes, as `plimsoll check` says it."""
    text = lab_text(answers, each)
    return expected_s(parse_model(text, LAB_FILE, Lab, MANUAL, key_problems)) or 0.0


def write_experiment(folder: Path, answers: Answers, found: Lengths, as_json: bool) -> None:
    """Write both files, overwriting neither, and say what comes next. Raises OutputError."""
    lab, limits = lab_text(answers, found), gates_text(answers, found)
    read = parse_model(lab, LAB_FILE, Lab, MANUAL, all_problems)
    parse_model(limits, GATES_FILE, gates.Gates, gates.MANUAL, gates.problems)
    _write_new(folder / GATES_FILE, limits)
    try:
        _write_new(folder / LAB_FILE, lab)
    except OutputError:
        (folder / GATES_FILE).unlink()  # half of two helps nobody
        raise
    about_s = expected_s(read)
    if as_json:
        written = {"lab": str(folder / LAB_FILE), "gates": str(folder / GATES_FILE), "about_s": about_s}
        click.echo(json.dumps(written | {"runs": len(answers.disks) * found.repeats}, indent=2))
        return
    runs = counted(len(answers.disks) * found.repeats, "run")
    click.echo(
        f"Wrote {folder / LAB_FILE} and {folder / GATES_FILE}: {runs}, about {seconds(about_s or 0)}. "
        "Read them, then:"
    )
    click.echo(f"  plimsoll check {folder / LAB_FILE}")
    click.echo(f"  plimsoll run {folder / LAB_FILE}")
    names = [disk.name for disk in answers.disks]
    sides = f" --baseline {names[0]} --candidate {names[1]}" if len(names) > 1 else ""
    click.echo(f"  plimsoll compare results/{answers.name}-TIME{sides} --gates {folder / GATES_FILE}")
    target = next(iter(answers.site.targets), "URL")
    click.echo("Before anything is moved, see what so many runs would find on the site as it is:")
    click.echo(f"  plimsoll rehearse {shlex.quote(answers.log.path)} --target {target}")


def _write_new(path: Path, text: str) -> None:
    try:
        with open_replacement(path, only_new=True, parents=True) as file:
            file.write(text.encode())
    except FileExistsError:
        raise OutputError(f"{path} exists, and nothing is overwritten: choose another --out") from None
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}; choose another --out") from None
