"""lab.yml and gates.yml as they are written: with a comment on what to change. Pure."""

import json
import re

from plimsoll.common.units import seconds
from plimsoll.init.answers import Disk, Limits
from plimsoll.init.experiment import Answers, Lengths, metric
from plimsoll.init.here import Under

_PLAIN = re.compile(r"[A-Za-z0-9/][A-Za-z0-9/._-]*")
_NO_TEXT = re.compile(r"[0-9.+-]+|(?i:true|false|yes|no|on|off|null)|.*:")
_FIO_RATE = "50M"


def lab_text(told: Answers, lengths: Lengths) -> str:
    """Return the text of lab.yml."""
    return "\n".join(
        [
            "# Written by `plimsoll init`; docs/lab.md has every key. Check it: plimsoll lab check lab.yml",
            "# Your editor completes keys after: plimsoll schema lab.yml > lab.schema.json",
            "# yaml-language-server: $schema=lab.schema.json",
            f"name: {quoted(told.name)}",
            *_site(told),
            "",
            "# The first is what there is; the others may replace it. Keys: docs/disks.md, docs/tuning.md.",
            "backends:",
            *(line for number in range(len(told.disks)) for line in _backend(told, number)),
            "",
            "scenarios:",
            "  # The log at its own pace, again and again until the run is over. `speed: 2`: twice the pace.",
            "  - scenario: replay",
            f"    options: {{log: {quoted(told.log.path)}}}",
            "  # Others, such as save-article or visitors: plimsoll scenario list, docs/scenarios.md.",
            "",
            *_saturator(told),
            *_lengths(told, lengths),
            "order: abba # forwards and backwards in turn, so that what drifts drifts for all",
            "",
        ]
    )


def _site(told: Answers) -> list[str]:
    if not told.site.is_own:
        return []
    return [
        "# The WordPress of `make site`: small, medium or large. What exceeds the memory shows the disks.",
        "site: {size: medium}",
    ]


def _backend(told: Answers, number: int) -> list[str]:
    disk, below = told.disks[number], told.below[number]
    lines = [f"  - name: {quoted(disk.name)}"]
    if disk.path is not None:
        lines.append(f"    disk: {{kind: folder, path: {quoted(disk.path)}{_below(below)}}}")
        if not below.devices:
            lines.append("    # Say which disks lie under it, and they are sampled: devices: [nvme0n1]")
    if told.site.is_own:
        return [*lines, "    clone: {driver: compose}"]
    lines.append(f"    clone: {{driver: static, target: {quoted(told.site.targets[number])}}}")
    lines.append("    # It is not restarted between runs; `reset` has the commands for that: docs/lab.md.")
    if disk.path is None:
        lines.append(
            "    # Name its host and disk to have it sampled and saturated: docs/lab.md, docs/disks.md"
        )
    elif told.saturator:
        lines.append(f"    saturator: {_one_saturator(told.saturator, disk, below)}")
    return lines


def _below(below: Under) -> str:
    said = f", dataset: {quoted(below.dataset)}" if below.dataset else ""
    said += ", btrfs: true" if below.btrfs else ""
    return said + (f", devices: [{', '.join(map(quoted, below.devices))}]" if below.devices else "")


def _one_saturator(kind: str, disk: Disk, below: Under) -> str:
    """Return the saturator of a site that exists: the lab does not know where its data lie."""
    if kind == "zfs-send":
        return f"{{kind: zfs-send, dataset: {quoted(below.dataset or '')}}}"
    return f"{{kind: fio, folder: {quoted(disk.path or '')}, rate_bytes_per_s: {_FIO_RATE}}}"


def _saturator(told: Answers) -> list[str]:
    if told.saturator is None:
        return ["# No saturator: nobody said where the disks are. What keeps them busy: docs/saturators.md."]
    lines = ["# What keeps the disks busy in the middle of each run: docs/saturators.md."]
    if not told.site.is_own:
        return [*lines, "# Each backend has its own, above."]
    if told.saturator == "zfs-send":
        return [*lines, "saturator: {kind: zfs-send}"]
    return [*lines, f"saturator: {{kind: fio, rate_bytes_per_s: {_FIO_RATE}}}"]


def _lengths(told: Answers, lengths: Lengths) -> list[str]:
    part_s = lengths.part_s
    phases = f"{{before_s: {part_s}, during_s: {2 * part_s}, after_s: {part_s}}}"
    if told.saturator is None:
        phases = f"{{before_s: 0, during_s: {lengths.run_s}, after_s: 0}}"
    return [
        f"# To fill {seconds(told.lasts_s)}.",
        f"phases: {phases} # seconds before, during and after the saturator",
        f"repeats: {lengths.repeats} # runs on each backend; 4 are the least for a verdict, more decide more",
    ]


def gates_text(told: Answers, lengths: Lengths) -> str:
    """Return the text of gates.yml."""
    busy = told.saturator is not None
    during = metric(told.log, 2 * lengths.part_s)
    whole = metric(told.log, lengths.run_s)
    lines = [
        "# Written by `plimsoll init`; docs/compare.md has every key. Set limits before you look at results.",
        "# Your editor completes keys after: plimsoll schema gates.yml > gates.schema.json",
        "# yaml-language-server: $schema=gates.schema.json",
        "confidence: 0.95 # of 100 comparisons, 5 at most pass wrongly, all gates together",
        "gates:",
    ]
    if busy:
        lines += _gate("the tail while the disks are busy", "during", during, told.limits)
    lines += _gate(
        "the tail of the whole run", "whole", whole, told.limits if not busy else _relative(told.limits)
    )
    return "\n".join(
        [
            *lines,
            f"  # Failures: at most {100 * told.limits.more_errors:g} % of all requests more than before.",
            "  - scenario: replay",
            "    metric: error share",
            f"    at_most_more: {told.limits.more_errors:g}",
            "",
        ]
    )


def _relative(limits: Limits) -> Limits | None:
    """Return the limit by the baseline alone, None where there is none: the absolute one is for the worst."""
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


def quoted(text: str) -> str:
    """Return text as YAML: plain where it can be taken for nothing else, else in quotes."""
    plain = _PLAIN.fullmatch(text) and not _NO_TEXT.fullmatch(text)
    return text if plain else json.dumps(text, ensure_ascii=False)
