"""Figures in, one self-contained HTML page out."""

from plimsoll.analysis.report.make import Report, make_report

__all__ = ["Report", "make_report"]
