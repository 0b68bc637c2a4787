"""Figures in, one self-contained HTML page out."""

from plimsoll.analysis.report.contents import Report
from plimsoll.analysis.report.report import make_report

__all__ = ["Report", "make_report"]
