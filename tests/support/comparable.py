"""Small experiments whose truth is known, nights of them, and compare, regress and signoff on them."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner, Result

from plimsoll.analysis.compare.comparison import Comparison, compare
from plimsoll.cli import main
from tests.support.rundir import change_records, records, write_run

START = datetime(2026, 11, 21, 4, 0, tzinfo=UTC)
REQUESTS = 1500
ORDERS = ("BAAB", "AABB", "ABAB", "BBAA")
STEADY = (1.00, 1.02, 0.99, 1.01, 0.98)


def instant(minutes: float) -> str:
    return f"{START + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%S.%fZ}"


def write_comparable(
    path: Path,
    backend: str,
    repeat: int,
    place: int,
    tail_ms: float,
    *,
    scenario: str = "replay",
    count: int = REQUESTS,
    saturator: str | None = "zfs-send",
    errors: int = 0,
    timeout_s: float | None = None,
    measures: Sequence[tuple[str, float]] = (),
    **facts: Any,
) -> Path:
    """Write a run: 1 ms each, but for the slowest of a hundred, which take `tail_ms`; it is saturated from
    0.2 s on, while its last 1,300 requests are due. `errors` requests at its start fail at once."""
    table = records(count)
    table["total_us"][::100] = round(tail_ms * 1000)
    table["error"][:errors] = 5
    events: list[dict[str, Any]] = []
    at_ns = 300_000_000
    for name, value in measures:  # one after another
        at_ns += int(value * 1e6) + 1
        events.append({"t_ns": at_ns, "event": "measure", "name": name, "value": value, "unit": "ms"})
    if saturator:
        events.append({"t_ns": 200_000_000, "event": saturator, "phase": "start"})
    summary = {"requests": {"total": count, "sent": count}, "duration_s": 1.5}
    times: dict[str, Any] = {
        "started_at": instant(2 * place),
        "ended_at": instant(2 * place + count / 60_000),
    }
    if timeout_s is not None:
        facts = {"load": {"digest": "d", "settings": {"timeout_s": timeout_s}}} | facts
    named: dict[str, Any] = {"scenario": scenario, "backend": backend, "repeat": repeat}
    return write_run(path, table, events=events, summary=summary, **(named | times | facts))


def write_both(
    folder: Path,
    ratio: float = 1.0,
    repeats: int = 4,
    *,
    names: tuple[str, str] = ("sata", "nvme"),
    spread: Callable[[int, int], float] = lambda side, repeat: STEADY[(repeat + 2 * side) % len(STEADY)],
    first: int = 0,
    **more: Any,
) -> Path:
    """Write an experiment of two backends in the order ABBA; the second takes `ratio` times as long."""
    for repeat in range(1, repeats + 1):
        for place, side in enumerate((0, 1) if repeat % 2 else (1, 0)):
            at = first + 2 * (repeat - 1) + place
            tail_ms = 50 * spread(side, repeat) * (ratio if side else 1.0)
            name = f"{at + 1:04d}-{more.get('scenario', 'replay')}--{names[side]}--{repeat}"
            write_comparable(folder / "runs" / name, names[side], repeat, at, tail_ms, **more)
    return folder


def write_blocks(
    folder: Path, runs: int, ratio: float = 1.0, drift: float = 1.0, of: int = 16, **stated: Any
) -> Path:
    """Write the first `runs` of an experiment of `of` in blocks, where nvme takes `ratio` times as long.

    Each block takes `drift` times as long as the one before. `stated` is what else run.json says of the
    experiment.
    """
    places = [(block, side) for block in range(of // 4) for side in ORDERS[block % len(ORDERS)]]
    for at, (block, side) in enumerate(places[:runs]):
        backend = "nvme" if side == "B" else "sata"
        tail_ms = 50 * drift**block * (1.0, 1.01, 0.99, 1.0)[at % 4] * (ratio if side == "B" else 1.0)
        repeat = 1 + sum(other == side for _, other in places[:at])
        name = f"{at + 1:04d}-replay--{backend}--{repeat}"
        experiment = {"name": "blocks", "run": at + 1, "of": of, "block": block + 1} | stated
        write_comparable(folder / "runs" / name, backend, repeat, at, tail_ms, experiment=experiment)
    return folder


def runs_of(folder: Path, backend: str = "nvme") -> list[Path]:
    return sorted((folder / "runs").glob(f"*--{backend}--*"))


def change_side(folder: Path, backend: str, part: slice = slice(None), **columns: Any) -> None:
    """Change columns of the records of one backend's runs."""
    for path in runs_of(folder, backend):
        change_records(path, part, **columns)


def separated(folder: Path, ratio: float = 1.0, repeats: int = 4) -> tuple[Path, Path]:
    """Two folders, one side each, the candidate's runs after all of the baseline's."""
    random = np.random.default_rng(1)
    for side, name in enumerate(("before", "after")):
        for repeat in range(repeats):
            tail_ms = 50 * (ratio if side else 1) * float(random.uniform(0.98, 1.02))
            path = folder / name / f"{repeat}"
            write_comparable(path, "nvme", repeat + 1, side * repeats + repeat, tail_ms)
    return folder / "before", folder / "after"


def judged(folder: Path, gates: str = "") -> Comparison:
    path = None
    if gates:
        path = folder / "gates.yml"
        path.write_text(gates)
    return compare([folder], "sata", "nvme", path)


def reasons(found: Comparison) -> str:
    return " ".join(each.verdict.says for each in found.judged)


def compare_json(folder: Path, gates: str = "", *words: str | Path) -> dict[str, Any]:
    """Compare sata with nvme by the command; return its JSON, and its exit code as `exit`.

    Looks are remembered in the folder alone: as if each folder were another user's.
    """
    if gates:
        words = ("--gates", write_gates(folder, gates), *words)
    state = {"XDG_STATE_HOME": str(folder.resolve() / ".state")}
    result = CliRunner().invoke(
        main, ["compare", *map(str, (folder, *BACKENDS, "--json", *words))], env=state
    )
    found: dict[str, Any] = json.loads(result.stdout)
    return found | {"exit": result.exit_code}


def gated(*gates: str, keys: str = "") -> str:
    """Return a gates.yml of `keys` and these gates on the replay."""
    return f"{keys}gates:\n" + "".join(f"- {{scenario: replay, {gate}}}\n" for gate in gates)


def finding_names(found: Mapping[str, Any]) -> set[str]:
    return {finding["name"] for finding in found["findings"]}


# Nights of an experiment, whose tail is known.

FIRST = datetime(2026, 1, 1, 2, 0, tzinfo=UTC)
LAB = "nightly"
OLD_IS_FINE = ("--stale-after", "100000d")


def stamp(number: int) -> str:
    return f"{FIRST + timedelta(days=number):%Y%m%dT%H%M%SZ}"


def folder_of(results: Path, number: int, lab: str = LAB) -> Path:
    return results / f"{lab}-{stamp(number)}"


def write_night(
    results: Path,
    number: int,
    tails_ms: Mapping[str, float],
    *,
    repeats: int = 1,
    lab: str = LAB,
    planned: int | None = None,
    count: int = 1500,
    **more: Any,
) -> Path:
    """Write night `number`: one run a backend and repeat, whose p99.9 is about what `tails_ms` says."""
    folder = folder_of(results, number, lab)
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    place = 0
    for repeat in range(1, repeats + 1):
        for backend, tail_ms in tails_ms.items():
            place += 1
            began = FIRST + timedelta(days=number, minutes=3 * place)
            write_comparable(
                folder
                / "runs"
                / f"{place:04d}-{more.get('scenario', 'replay')}--{backend}--{repeat}".replace("/", "_"),
                backend,
                repeat,
                place,
                tail_ms,
                count=count,
                **(
                    {
                        "experiment": {"name": lab, "run": place, "of": planned or repeats * len(tails_ms)},
                        "started_at": f"{began:%Y-%m-%dT%H:%M:%S.%fZ}",
                        "ended_at": f"{began + timedelta(minutes=1):%Y-%m-%dT%H:%M:%S.%fZ}",
                    }
                    | more
                ),
            )
    return folder


def regress(history: Path, *arguments: str | Path) -> Result:
    """Run the command; the nights are of a past that is not stale, unless the arguments say when it is.

    A history that is not there begins.
    """
    new = [] if history.exists() else ["--new"]
    words = ["regress", "--history", str(history), *new, *OLD_IS_FINE, *map(str, arguments)]
    return CliRunner().invoke(main, words)


# Sign-offs of an experiment: its gates, and the command.

GATES = """gates:
  - {scenario: replay, phase: during, at_most_ratio: 1.10}
  - {scenario: replay, metric: error share, at_most_more: 0.001}
"""
BACKENDS = ("--baseline", "sata", "--candidate", "nvme")


def sign_off(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["signoff", *map(str, arguments)])


def sign_off_in(folder: Path, *further: str | Path) -> Result:
    """Sign the folder's `experiment` off as its `signed`."""
    words = ("--gates", write_gates(folder), "--out", folder / "signed", *further)
    return sign_off(folder / "experiment", *BACKENDS, *words)


def write_gates(folder: Path, text: str = GATES) -> Path:
    path = folder / "limits.yml"
    path.write_text(text)
    return path


def signed_off(folder: Path, *further: str | Path, ratio: float = 1.0) -> Path:
    """Write an experiment and its sign-off; return the sign-off's folder."""
    write_both(folder / "experiment", ratio)
    result = sign_off_in(folder, *further)
    assert result.exit_code in (0, 1), result.output
    return folder / "signed"


def visible_words(signed: Path) -> str:
    """Return the words of a sign-off's page, without its scripts."""
    body = (signed / "signoff.html").read_text(encoding="utf-8").split("<body>")[1]
    return " ".join(re.sub(r"<[^>]*>", " ", body.split('<script type="application/json"')[0]).split())


def pdf_of(*pages: str) -> bytes:
    """Return a PDF whose pages have a line each. It has no table of its objects: readers find them."""
    objects = ["<</Type/Catalog/Pages 2 0 R>>", "", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids = []
    for page in pages:
        kids.append(f"{len(objects) + 1} 0 R")
        drawn = f"BT /F 9 Tf ({page}) Tj ET"
        objects.append(
            f"<</Type/Page/Parent 2 0 R/Resources<</Font<</F 3 0 R>>>>/Contents {len(objects) + 2} 0 R>>"
        )
        objects.append(f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream")
    objects[1] = f"<</Type/Pages/Kids[{' '.join(kids)}]/Count {len(kids)}>>"
    body = "".join(f"{number} 0 obj\n{each}\nendobj\n" for number, each in enumerate(objects, 1))
    return f"%PDF-1.4\n{body}trailer\n<</Root 1 0 R>>\nstartxref\n0\n%%EOF\n".encode()


def stand_in_browser(folder: Path) -> Path:
    """Return a program that prints as a browser does; its PDF is two pages with the sum alone."""
    path = folder / "chromium"
    path.write_text(
        """#!/bin/sh
for word; do
    case $word in
    --print-to-pdf=*) target=${word#*=} ;;
    file://*) page=${word#file://} ;;
    esac
done
digits=$(sed -n 's/.*id="sums-sha256">\\([0-9a-f]*\\)<.*/\\1/p' "$page")
cat > "$target" <<PDF
"""
        + pdf_of("0" * 64, "0" * 64).decode().replace("0" * 64, "$digits")
        + "PDF\n"
    )
    path.chmod(0o755)
    return path
