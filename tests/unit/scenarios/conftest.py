"""Locust patches the standard library when it is imported: best before anything that opens connections."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # another folder's tests may have imported requests
    import locust  # noqa: F401
