"""The facts of the host under a run: read, and kept in `run.json`."""

from plimsoll.lab.facts.facts import read_facts, read_facts_after

__all__ = ["read_facts", "read_facts_after"]
