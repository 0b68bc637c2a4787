"""The command, and the ground on which all Python parts stand: the run directory and common tools."""

__version__ = "0.1.0"
