"""Tuning as part of a backend: applied before its runs and put back after them, also when a run dies."""

from lab.tuning.apply import apply, put_back
from lab.tuning.errors import TuningError
from lab.tuning.plan import Plan, plan
from lab.tuning.settings import Tuning

__all__ = ["Plan", "Tuning", "TuningError", "apply", "plan", "put_back"]
