"""Tuning as part of a backend: applied before its runs and put back after them, also when a run dies."""

from plimsoll.lab.tuning.apply import JournalPlace, apply_tuning, put_back, put_back_all
from plimsoll.lab.tuning.keys import Tuning
from plimsoll.lab.tuning.plan import TuningPlan

__all__ = ["JournalPlace", "Tuning", "TuningPlan", "apply_tuning", "put_back", "put_back_all"]
