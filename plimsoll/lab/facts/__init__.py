"""The facts of the host under a run: read, kept in `run.json`, and compared between two backends."""

from plimsoll.lab.facts.difference import Difference, difference
from plimsoll.lab.facts.model import DiskFacts, HostFacts, PoolFacts
from plimsoll.lab.facts.read import read_again, read_facts

__all__ = ["Difference", "DiskFacts", "HostFacts", "PoolFacts", "difference", "read_again", "read_facts"]
