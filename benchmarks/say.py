"""Progress, on standard error only: standard output is for the table."""

import sys
import time

_began = time.monotonic()


def say(text: str) -> None:
    print(f"[{time.monotonic() - _began:6.0f} s] {text}", file=sys.stderr, flush=True)
