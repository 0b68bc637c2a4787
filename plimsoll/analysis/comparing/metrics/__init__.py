"""The metrics that a gate may limit: one file each, listed in registry.py."""
