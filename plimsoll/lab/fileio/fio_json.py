"""The JSON that fio prints of one group of jobs. Pure."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from plimsoll.lab.errors import LabError

Read = TypeVar("Read")


def of_job(
    printed: str, read: Callable[[dict[str, Any], str], Read], failure: type[LabError], needs: str = ""
) -> Read:
    """Return what `read` makes of the one job that fio printed, and of fio's version.

    Other things may stand before the JSON. Raises `failure` where the job failed, or where fio printed
    something else; then with what it `needs`.
    """
    start = 0 if printed.startswith("{") else printed.find("\n{\n") + 1
    try:
        document = json.loads(printed[start:])
        (job,) = document["jobs"]
        if job["error"]:
            raise failure(f"fio ended with error {int(job['error'])}")
        return read(job, str(document["fio version"]))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise failure(f"cannot parse what fio prints: {needs}{printed.strip()[:100] or 'nothing'}") from None
