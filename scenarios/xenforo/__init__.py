"""The upgrade of a forum through its installer's pages, or by its command over SSH.

What the pages look like stands in a YAML file, since the software is not ours; docs/xenforo.md has the keys.
"""
