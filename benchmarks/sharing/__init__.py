"""Instances share a log's clients unevenly: by how much, and what it does to their lag (docs/scaling.md)."""
