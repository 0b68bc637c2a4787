"""Tuning as part of a backend: applied before its runs and put back after them, also when a run dies."""

from plimsoll.lab.tuning.apply import apply, put_back, put_back_all
from plimsoll.lab.tuning.errors import TuningError
from plimsoll.lab.tuning.journal import JournalPlace
from plimsoll.lab.tuning.plan import Plan, plan
from plimsoll.lab.tuning.settings import Tuning

__all__ = ["JournalPlace", "Plan", "Tuning", "TuningError", "apply", "plan", "put_back", "put_back_all"]
