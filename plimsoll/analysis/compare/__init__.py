"""Runs of two sides in, a verdict a gate out: PASS, FAIL or INCONCLUSIVE (docs/compare.md)."""
