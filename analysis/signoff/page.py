"""The document as one page that is complete in itself, in the look of the report, made for A4 paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from analysis.comparing.comparison import Comparison
from analysis.comparing.decision import percent
from analysis.comparing.page import TEMPLATES as COMPARING
from analysis.comparing.page import (
    comparison_charts,
    differences_table,
    gate_cells,
    gate_columns,
    runs_table,
)
from analysis.comparing.text import summary
from analysis.report.shell import rendered
from analysis.signoff.evidence import (
    circumstances_table,
    download_table,
    lag_table,
    limits_of,
    scenarios_table,
)
from plimsoll.common.units import counted

_OWN = Path(__file__).parent / "templates"
_LEAST_LINES = 2


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


def signoff_page(found: Comparison, document: Document) -> str:
    """Return the HTML."""
    return rendered(
        "signoff.html",
        comparison_charts(found),
        _OWN,
        COMPARING,
        styles=["compare.css", "signoff.css"],
        title=f"{found.candidate.name} against {found.baseline.name}",
        verdict=found.verdict,
        summary=summary(found),
        document=document,
        made_at=f"{document.made_at:%Y-%m-%d %H:%M} UTC",
        signers=[*document.signers, *[""] * (_LEAST_LINES - len(document.signers))],
        files=counted(document.files, "file"),
        size=counted(document.bytes, "byte"),
        columns=gate_columns(found),
        gates=[(each, gate_cells(each)) for each in found.judged],
        confidence=percent(found.gates.confidence),
        differences=differences_table(found),
        what=[scenarios_table(found), circumstances_table(found)],
        controls=[table for table in (download_table(found), lag_table(found)) if table],
        limits=list(limits_of(found)),
        warned=len(found.warnings),
        runs=runs_table(found),
    )
