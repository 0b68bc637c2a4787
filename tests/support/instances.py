"""Several k6 instances, each in a network namespace of its own, before one nginx."""

import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.support.programs import ROOT

K6 = ROOT / "bin" / "k6-plimsoll"
K6_RUN = (str(K6), "run", "--quiet", "--no-usage-report", "--address", "")
SCRIPT = """
import plimsoll from 'k6/x/plimsoll';
const options_ = JSON.parse(__ENV.OPTIONS);
export const options = {
  scenarios: { replay: plimsoll.scenario({ instances: Number(__ENV.INSTANCES) }) },
  thresholds: JSON.parse(__ENV.THRESHOLDS || '{}'),
};
const log = plimsoll.open(options_);
export default function () { log.replay(); }
"""


def begin(
    script: Path,
    options: str,
    within: Sequence[str] = (),
    part: Sequence[str] = (),
    instances: int | None = None,
    more: Sequence[str] = (),
) -> subprocess.Popen[str]:
    """Start one instance; `part` is its segment and the sequence of all, `more` are k6's own options."""
    script.write_text(SCRIPT)
    count = instances or (part[1].count(",") if part else 1)
    segment = ("--execution-segment", part[0], "--execution-segment-sequence", part[1]) if part else ()
    told = ("--env", f"OPTIONS={options}", "--env", f"INSTANCES={count}", str(script))
    command = [*within, *K6_RUN, "--summary-mode", "disabled", *more, *segment, *told]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def soon(seconds: float) -> str:
    """An instant so many seconds from now, as startAt wants it."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
