"""Scenarios: the things people do to a site, one file each, registered in `registry`.

Each is also a locustfile, or has a k6 script beside it. Scenarios know nothing of the lab: they take a
target and write a run directory.
"""
