"""The facts of the host under a run: read, and kept in `run.json`."""

from plimsoll.lab.facts.read import read_again, read_facts

__all__ = ["read_again", "read_facts"]
