"""Tuning as part of a backend: applied before its runs and put back after them, also when a run dies."""

from lab.tuning.apply import apply, put_back, put_back_all
from lab.tuning.errors import TuningError
from lab.tuning.journal import JournalPlace
from lab.tuning.plan import Plan, plan
from lab.tuning.settings import Tuning

__all__ = ["JournalPlace", "Plan", "Tuning", "TuningError", "apply", "plan", "put_back", "put_back_all"]
