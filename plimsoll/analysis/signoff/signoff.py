"""`plimsoll signoff` writes a document to sign, and `plimsoll signoff verify` checks one.

The folder of a sign-off appears complete or not at all.
"""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from plimsoll.analysis.compare.comparison import Comparison, compare, judge_sides
from plimsoll.analysis.compare.gates import read_gates
from plimsoll.analysis.compare.page import comparison_document
from plimsoll.analysis.evidence.sides import open_sides
from plimsoll.analysis.page.against_log import hold_against_log
from plimsoll.analysis.page.verdict import DocumentFiles, document_options, text_lines
from plimsoll.analysis.signoff.page import SignoffFacts, signoff_page
from plimsoll.analysis.signoff.pdf import PrintingError, UnreadablePdfError, has_on_each_page, print_pdf
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
    verify_signoff,
    write_manifest,
)
from plimsoll.analysis.statistics.against_log import HeldRun
from plimsoll.common.errors import OutputError
from plimsoll.common.hostile import printable
from plimsoll.common.progress import is_shown, progress_bar, progress_option

Progress = Callable[[int, int], None]
Bar = Callable[[str, str], AbstractContextManager[Progress]]
_PATH = click.Path(path_type=Path)
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


class _SignOff(click.Command):
    """Takes two sides; or the word `verify`, which is a command of its own."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args[:1] == ["verify"]:
            return verify.make_context(f"{info_name} verify", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(cls=_SignOff)
@click.argument("paths", metavar="BASELINE [CANDIDATE]", nargs=-1, required=True, type=_PATH)
@click.option("--baseline", metavar="NAME", help="Take the runs of this backend as the baseline.")
@click.option("--candidate", metavar="NAME", help="Take the runs of this backend as the candidate.")
@click.option("--gates", metavar="FILE", type=_FILE, required=True, help="The limits (docs/compare.md).")
@click.option("--out", metavar="DIR", type=_PATH, required=True, help="The folder to write; must not exist.")
@click.option(
    "--question", metavar="TEXT", help="What is to be decided. Default: whether the limits are kept."
)
@click.option("--signer", "signers", metavar="NAME", multiple=True, help="Who signs; may be given again.")
@click.option(
    "--key",
    metavar="FILE",
    type=_FILE,
    help="Sign with this key of ssh-keygen; of one in an agent, give the public key.",
)
@click.option(
    "--same",
    metavar="FOLDER",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The result of plimsoll same on the two sites: pages that differ exclude a PASS.",
)
@click.option(
    "--against-log",
    metavar="DIR",
    type=_PATH,
    help="Hold the replays against their log, which plimsoll import accesslog made DIR of.",
)
@document_options
@click.option("--json", "as_json", is_flag=True, help="Print signoff.json.")
@progress_option
def signoff(
    junit_file: Path | None,
    markdown_file: Path | None,
    as_json: bool,
    progress: bool | None,
    **given: Any,
) -> None:
    """Write a document to sign: verdict, gates, evidence and its limits, sums of all raw data.

    \b
    Examples:
        plimsoll signoff results/bench --baseline rotating --candidate nvme --gates gates.yml --out signed
        plimsoll signoff results/old results/new --gates gates.yml --out signed --signer 'A. Bell'
        plimsoll signoff results/old results/new --gates gates.yml --out signed --same results/2026…-same
        plimsoll signoff verify signed --allowed-signers allowed_signers

    Sides are given as to plimsoll compare, and judged as by it, but that their runs have to alternate in
    time. `plimsoll signoff verify DIR` checks such a document.

    Exit codes: 0 PASS; 1 FAIL; 2 wrong usage or unreadable input; 3 INCONCLUSIVE. The document is written
    with each verdict.
    """  # noqa: D301 \b is click's: keep these lines as they are
    options = SignOffOptions(**given)
    if len(options.paths) > 2:
        raise click.UsageError("give two sides at most: BASELINE and CANDIDATE")
    files = DocumentFiles(junit_file, markdown_file)
    shown = is_shown(progress)
    made = write_signoff(options, lambda what, unit: progress_bar(what, unit, shown))
    document = comparison_document(made.found, "signoff")
    files.write(document)
    if made.without_pdf:
        click.echo(f"plimsoll signoff: without a PDF: {printable(made.without_pdf)}; print {PAGE}.", err=True)
    if as_json:
        click.echo(json.dumps(made.data, indent=2, allow_nan=False))
    else:
        click.echo("\n".join(text_lines(document)))
        click.echo("")
        click.echo(f"on every page: {made.sums_sha256}")
        for name in (PAGE, *([] if made.without_pdf else [PDF])):
            click.echo(f"document: {printable(str(options.out / name), 4096)}")
    sys.exit(made.found.exit_code)


@click.command()
@click.argument("directory", metavar="DIR", type=_PATH)
@click.option(
    "--allowed-signers",
    metavar="FILE",
    type=_PATH,
    help="Who may sign, as ssh-keygen reads it: one of them must have signed the manifest.",
)
@progress_option
def verify(directory: Path, allowed_signers: Path | None, progress: bool | None) -> None:
    """Check every file of a sign-off and of its raw data, and the signature.

    \b
    Examples:
        plimsoll signoff verify signed --allowed-signers ~/.ssh/allowed_signers

    It names each file that is missing, was added or changed.

    Exit codes: 0 all is as it was; 1 something was changed, or is signed by nobody allowed; 2 wrong usage, or
    there is no sign-off.
    """  # noqa: D301 \b is click's: keep these lines as they are
    with progress_bar("checking", "files", is_shown(progress)) as advance:
        found = verify_signoff(directory, allowed_signers, advance)
    for text in found.good:
        click.echo(f"good: {printable(text, 4096)}")
    for text in found.notes:
        click.echo(f"note: {printable(text, 4096)}")
    for text in found.problems:
        click.echo(f"WRONG: {printable(text, 4096)}")
    sys.exit(1 if found.problems else 0)


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
    """The comparison, the content of signoff.json, the sum on every page; why there is no PDF, or None."""

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
        shutil.copyfile(options.gates, folder / GATES)
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
    return judge_sides(opened, sides, gates, further)


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
    """Print the page with the checksum `digits`. Return why there is no PDF, or None."""
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
