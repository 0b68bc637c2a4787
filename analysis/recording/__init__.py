"""Writes run directories from Python: what scripted scenarios, imports and the lab record goes through here.

The format is that of docs/run-format.md, which `bin/replay` writes as well.
"""

from analysis.models import RunFacts
from analysis.recording.request import Request
from analysis.recording.writer import RunWriter

__all__ = ["Request", "RunFacts", "RunWriter"]
