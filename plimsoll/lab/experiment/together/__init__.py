"""Scenarios together: the members of one run, who loads one clone at the same time."""
