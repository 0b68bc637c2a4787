"""Run directories in; figures, tables and verdicts out.

Layers, each importing only those to its right: cli, report, figures, statistics, records.
"""

__version__ = "0.1.0"
