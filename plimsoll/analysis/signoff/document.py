"""A sign-off: its folder appears complete or not at all."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from plimsoll.analysis.compare.comparison import Comparison, compare, judge_sides
from plimsoll.analysis.compare.gates import read_gates
from plimsoll.analysis.evidence.sides import open_sides
from plimsoll.analysis.page.against_log import hold_against_log
from plimsoll.analysis.signoff.page import SignoffFacts, signoff_page
from plimsoll.analysis.signoff.pdf import PrintingError, UnreadablePdfError, has_on_each_page, print_pdf
from plimsoll.analysis.signoff.rehearsed import find_rehearsal
from plimsoll.analysis.signoff.same_pages import PageComparison, find_page_findings, read_page_comparison
from plimsoll.analysis.signoff.seal import (
    DATA,
    EVIDENCE,
    GATES,
    JUDGED_BY,
    MANIFEST,
    PAGE,
    PDF,
    RAW_BYTES,
    FileSum,
    name_beside,
    raw_files,
    sha256_of,
    sign,
    sum_files,
    sums_text,
    total_bytes,
    write_manifest,
)
from plimsoll.analysis.statistics.against_log import HeldRun
from plimsoll.common.errors import OutputError

Progress = Callable[[int, int], None]
Bar = Callable[[str, str], AbstractContextManager[Progress]]


@dataclass(frozen=True)
class SignOffOptions:
    """The request for a sign-off. Names and texts are hostile."""

    paths: Sequence[Path]
    gates: Path
    out: Path
    baseline: str | None = None
    candidate: str | None = None
    question: str | None = None
    signers: Sequence[str] = ()
    key: Path | None = None
    same: Path | None = None
    against_log: Path | None = None


@dataclass(frozen=True)
class SignOff:
    """The comparison, the content of signoff.json, the sum on every page; why the PDF is missing, or None."""

    found: Comparison
    data: dict[str, object]
    sums_sha256: str
    without_pdf: str | None


def write_signoff(options: SignOffOptions, bar: Bar = lambda *_: nullcontext(lambda *_: None)) -> SignOff:
    """Write the sign-off. `bar` shows how far a part of the work is. Raises PlimsollError."""
    _refuse_existing(options.out)
    read_gates(options.gates)
    opened = open_sides(options.paths, options.baseline, options.candidate)
    same = None if options.same is None else read_page_comparison(options.same)
    replays = [run for side in opened for run in side.runs]
    held = hold_against_log(options.against_log, replays) if options.against_log else []
    beside = [each for each in (options.same, options.against_log) if each is not None]
    files = raw_files([*(run.path for run in replays), *beside])
    with _open_folder(options.out) as (folder, scratch):
        # judged by the copy, so that the gates that are kept are those that were asked
        shutil.copy2(options.gates, folder / GATES)
        with bar("reading", "requests") as progress:
            found = compare_sides(replace(options, gates=folder / GATES), progress, same)
        made_at = datetime.now(UTC)
        beside_out = options.out.parent.resolve() / options.out.name
        raw_bytes = {name_beside(file, beside_out): file.bytes for file in files}
        data = _signoff_json(options, found, made_at, same, held) | {RAW_BYTES: raw_bytes}
        (folder / DATA).write_text(json.dumps(data, indent=2, allow_nan=False) + "\n", encoding="utf-8")
        with bar("summing", "bytes") as progress:
            raw = sum_files(files, beside_out, progress)
        own = [FileSum(name, sha256_of(folder / name)) for name in JUDGED_BY]
        (folder / EVIDENCE).write_bytes(sums_text([*own, *raw]))
        document = SignoffFacts(
            question=str(data["question"]),
            made_at=made_at,
            signers=options.signers,
            sums_sha256=sha256_of(folder / EVIDENCE),
            files=len(files),
            bytes=total_bytes(files),
            signed=options.key is not None,
            same=same,
            rehearsed=find_rehearsal(found.baseline.runs),
        )
        (folder / PAGE).write_text(signoff_page(found, document, held), encoding="utf-8", newline="\n")
        without_pdf = _print_page(folder, scratch, document.sums_sha256)
        write_manifest(folder)
        if options.key is not None:
            sign(options.key, folder / MANIFEST)
    return SignOff(found, data, document.sums_sha256, without_pdf)


def compare_sides(
    options: SignOffOptions, progress: Progress, same: PageComparison | None = None
) -> Comparison:
    """Compare as `plimsoll compare` does, but that sides have to alternate unless the gates say otherwise.

    `same` says whether they serve the same pages, where that was asked.
    """
    found = compare(options.paths, options.baseline, options.candidate, options.gates, progress)
    sides, gates = (found.baseline, found.candidate), found.gates
    if "interleaved" not in gates.model_fields_set:
        gates = gates.model_copy(update={"interleaved": True})
    further = [] if same is None else find_page_findings(same, sides)
    if gates is found.gates and not further:
        return found
    opened = open_sides(options.paths, options.baseline, options.candidate)
    return judge_sides(opened, sides, gates, further, found.gates_written_at, found.stated)


def _refuse_existing(out: Path) -> None:
    """Raise OutputError where something is in the place already."""
    if os.path.lexists(out):
        raise OutputError(
            f"{out}: is there already, and a sign-off is never overwritten: choose another --out"
        )


def _signoff_json(
    options: SignOffOptions,
    found: Comparison,
    made_at: datetime,
    same: PageComparison | None,
    held: Sequence[HeldRun],
) -> dict[str, object]:
    usual = (
        f"Does {found.candidate.name} keep the limits of {options.gates.name} against {found.baseline.name}?"
    )
    return {
        "format": 1,
        "question": options.question or usual,
        "made_at": f"{made_at:%Y-%m-%dT%H:%M:%SZ}",
        "signers": list(options.signers),
        "signed": options.key is not None,
        "same": None if same is None else {"folder": str(options.same), **same.as_json()},
        "comparison": found.as_json(),
        **({"against_log": [each.as_json() for each in held]} if held else {}),
    }


def _print_page(folder: Path, scratch: Path, digits: str) -> str | None:
    """Print the page with the checksum `digits`. Return why the PDF is missing, or None."""
    pdf = folder / PDF
    try:
        print_pdf(folder / PAGE, pdf, scratch)
        if has_on_each_page(pdf.read_bytes(), digits):
            return None
        why = "the browser does not print the sum on each page: install a newer one"
    except (PrintingError, UnreadablePdfError) as error:
        why = str(error)
    pdf.unlink(missing_ok=True)
    return why


@contextmanager
def _open_folder(out: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a folder that becomes `out` if the block ends well, and one for what is thrown away."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=out.parent, prefix=f".{out.name}.", ignore_cleanup_errors=True
        ) as name:
            folder, scratch = Path(name).resolve() / "signoff", Path(name).resolve() / "scratch"
            folder.mkdir()
            scratch.mkdir()
            yield folder, scratch
            _refuse_existing(out)
            folder.rename(out)
    except OSError as error:
        raise OutputError(
            f"{out}: cannot be written: {error.strerror or error}; choose another --out"
        ) from None
