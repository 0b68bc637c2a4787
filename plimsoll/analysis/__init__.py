"""Run directories in; charts, tables and verdicts out."""
