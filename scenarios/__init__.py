"""What people do to a site. One idea a file; each file is also a locustfile, or has a k6 script beside it.

Scenarios know nothing of the lab: they are given a target, and write a run directory.
"""
