"""The document as one page that is complete in itself, in the look of the report, made for A4 paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from markupsafe import Markup
from plotly.offline import get_plotlyjs

from analysis import __version__
from analysis.comparing.comparison import Comparison
from analysis.comparing.deciding import percent
from analysis.comparing.page import (
    comparison_figures,
    differences_table,
    gate_cells,
    gate_columns,
    runs_table,
)
from analysis.comparing.text import summary
from analysis.hostile import script_json
from analysis.report.shell import TEMPLATES, environment, policy, script
from analysis.signoff.evidence import (
    circumstances_table,
    download_table,
    lag_table,
    limits_of,
    scenarios_table,
)
from analysis.units import counted

_OWN = Path(__file__).parent / "templates"
_COMPARING = Path(__file__).parents[1] / "comparing" / "templates"
_LEAST_LINES = 2


@dataclass(frozen=True)
class Document:
    """What is asked, when, who is to sign (hostile), and the sums of the evidence."""

    question: str
    made_at: datetime
    signers: Sequence[str]
    sums_sha256: str
    files: int
    bytes: int
    signed: bool


def signoff_page(found: Comparison, document: Document) -> str:
    """Return the HTML."""
    behaviour = script((TEMPLATES / "report.js").read_text(encoding="utf-8"))
    plotly = script(get_plotlyjs())
    figures = comparison_figures(found)
    styles = (TEMPLATES / "report.css", _COMPARING / "compare.css", _OWN / "signoff.css")
    signers = [*document.signers, *[""] * (_LEAST_LINES - len(document.signers))]
    return (
        environment(_OWN)
        .get_template("signoff.html")
        .render(
            title=f"{found.candidate.name} against {found.baseline.name}",
            policy=policy([plotly, behaviour]),
            css=Markup("".join(path.read_text(encoding="utf-8") for path in styles)),  # noqa: S704 our own files
            plotly=plotly,
            behaviour=behaviour,
            figures=figures,
            data=Markup(script_json({each.key: each.as_json() for each in figures})),  # noqa: S704 escaped
            verdict=found.verdict,
            summary=summary(found),
            document=document,
            made_at=f"{document.made_at:%Y-%m-%d %H:%M} UTC",
            signers=signers,
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
            version=__version__,
        )
    )
