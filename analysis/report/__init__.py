"""Figures in, one self-contained HTML page out."""

from analysis.report.make import Made, make_report

__all__ = ["Made", "make_report"]
