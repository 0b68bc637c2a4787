"""The document as one page that is complete in itself, in the look of the report, made for A4 paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from plimsoll.analysis.compare.comparison import Comparison
from plimsoll.analysis.compare.decision import percent
from plimsoll.analysis.compare.page import TEMPLATES as COMPARING
from plimsoll.analysis.compare.page import (
    comparison_charts,
    differences_table,
    gate_cells,
    gate_columns,
    runs_table,
)
from plimsoll.analysis.compare.phase_table import phase_table
from plimsoll.analysis.page.shell import render_page
from plimsoll.analysis.report.sections.against_log import (
    against_log_cautions,
    against_log_chart,
    against_log_table,
)
from plimsoll.analysis.signoff.evidence import (
    circumstances_table,
    download_table,
    lag_table,
    limits_of,
    scenarios_table,
)
from plimsoll.analysis.signoff.firstpage import first_page, lines_to_sign
from plimsoll.analysis.signoff.samesite import SameResult, same_table
from plimsoll.analysis.signoff.words import DOUBTS
from plimsoll.analysis.statistics.against_log import HeldRun
from plimsoll.common.units import counted

_OWN = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Document:
    """The question, the time, the signers (hostile), and the sums of the evidence."""

    question: str
    made_at: datetime
    signers: Sequence[str]
    sums_sha256: str
    files: int
    bytes: int
    signed: bool
    same: SameResult | None = None


def signoff_page(found: Comparison, document: Document, held: Sequence[HeldRun] = ()) -> str:
    """Return the HTML; `held` are the replays that are held against their log."""
    chart = against_log_chart(held)
    evidence = f"{counted(document.files, 'file')} of raw data, {counted(document.bytes, 'byte')}"
    pages = f" By a comparison of pages, {document.same.sentence}." if document.same else ""
    first = first_page(found, document.signers, f"{evidence}; every page bears their sum at its foot.{pages}")
    return render_page(
        "signoff.html",
        [*comparison_charts(found), *([chart] if chart else [])],
        _OWN,
        COMPARING,
        styles=["compare.css", "signoff.css"],
        title=f"{found.candidate.name} against {found.baseline.name}",
        verdict=found.verdict,
        first=first,
        doubts_heading=DOUBTS,
        document=document,
        made_at=f"{document.made_at:%Y-%m-%d %H:%M} UTC",
        last_signers=[] if first.signers else lines_to_sign(document.signers),
        evidence=evidence,
        columns=gate_columns(found),
        gates=[(each, gate_cells(each)) for each in found.judged],
        confidence=percent(found.gates.confidence),
        differences=differences_table(found),
        what=[
            table
            for table in (phase_table(found), scenarios_table(found), circumstances_table(found))
            if table
        ],
        controls=[
            table
            for table in (
                document.same and same_table(document.same),
                download_table(found),
                lag_table(found),
                against_log_table(held),
            )
            if table
        ],
        limits=[
            *(caution.text for caution in against_log_cautions(held)),
            *limits_of(found, document.same is not None),
        ],
        runs=runs_table(found),
    )
