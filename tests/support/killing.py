"""Programs that are killed, as a power cut or an impatient hand does it."""

import contextlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.scenario import PLIMSOLL


def killed(words: Sequence[str | Path], after_s: float) -> bool:
    """Run plimsoll and kill it after that time; whether it still ran."""
    process = subprocess.Popen(
        [PLIMSOLL, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(after_s)
    still = process.poll() is None
    process.kill()
    process.wait()
    return still
