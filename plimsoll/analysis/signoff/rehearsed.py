"""What was found out before: the rehearsal in an experiment's folder, or beside it."""

import json
from collections.abc import Sequence
from pathlib import Path

from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.rundir.names import REHEARSAL_FILE, RUNS_FOLDER


def find_rehearsal(baseline: Sequence[MeasuredRun]) -> str | None:
    """Return what the last rehearsal said that such an experiment would find (hostile), None without one.

    One beside the experiment has to be of the baseline's site, one in its folder was put there.
    """
    folders = dict.fromkeys(run.directory.path.resolve().parent for run in baseline)
    experiments = [each.parent if each.name == RUNS_FOLDER else each for each in folders]
    targets = {run.directory.facts.target.url for run in baseline if run.directory.facts.target}
    inside = [each / REHEARSAL_FILE for each in experiments]
    beside = [path for each in experiments for path in each.parent.glob(f"*/{REHEARSAL_FILE}")]
    beside += [each.parent / REHEARSAL_FILE for each in experiments]
    for path in (*_latest_first(inside), *_latest_first(beside)):
        try:
            found = json.loads(path.read_bytes())
            said, target = str(found["says"]), found["target"]
        except (OSError, ValueError, LookupError, TypeError):
            continue
        if path in inside or target in targets:
            return said
    return None


def _latest_first(paths: Sequence[Path]) -> list[Path]:
    return sorted(filter(Path.is_file, paths), key=lambda path: path.stat().st_mtime, reverse=True)
