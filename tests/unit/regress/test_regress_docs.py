"""docs/regress.md has what there is: keys, limits, and the text as it is printed."""

import json
import re
from pathlib import Path
from typing import Any

from plimsoll.analysis.regress import changes, judge, judgement, tonight
from plimsoll.analysis.regress import regress as command
from plimsoll.analysis.regress.judgement import STALE_AFTER_S
from plimsoll.common import notify
from tests.support.comparable import regress, write_night
from tests.support.programs import DOCS

DOC = (DOCS / "regress.md").read_text(encoding="utf-8")
TEXT = " ".join(DOC.split())


def test_every_key_of_the_json_is_documented(tmp_path: Path) -> None:
    history = tmp_path / "history.sqlite"
    for number in range(2):
        regress(history, write_night(tmp_path, number, {"nvme": 50}), "--set-baseline", "latest")
    found = json.loads(regress(history, "--json").stdout)
    documented = set(re.findall(r"`(\w+)`", DOC.partition("## The JSON")[2]))
    assert _keys(found) <= documented | {"at_most_ratio", "at_most_more"}


def test_the_limits_are_those_of_the_code() -> None:
    for says in (
        f"worse by {100 * changes.MARGIN:g} % or more",
        f"(of error shares: by {100 * changes.MORE_ERRORS_MARGIN:g} in 100)",
        "its p is 10⁻⁶ or less" if changes.NEWS_P == 1e-6 else "?",
        f"{changes.LEAST_BEFORE} nights or more came before it, "
        f"{changes.LEAST_SINCE} since the change before, "
        f"and {changes.LEAST_AFTER} or more after",
        f"within the last {changes.RECENT} nights",
        f"with those of the last {tonight.NIGHTS} nights",
        f"first {changes.LEAST_BEFORE + changes.LEAST_AFTER - 1} nights yield figures only",
        f"within {changes.SAME} nights of it",
        f"the last {judge.LAST_NIGHTS} nights after the baseline",
        f"against its {judge.BASELINE_NIGHTS} nights",
        f"the last {changes.LEAST_AFTER} nights or more are not worse than before the change by "
        f"{100 * changes.MARGIN:g} %",
        f"(p 10⁻⁴ or less, or {changes.RECENT} nights)" if changes.MENDED_P == 1e-4 else "?",
        f"began over {STALE_AFTER_S / 3600:g} hours ago",
        f"show the last {judgement.LAST_DECISIONS}, page and JSON all",
        f"{command.MOST_ATTEMPTS} times at most",
        f"It has {notify.TIMEOUT_S:g} s",
    ):
        assert says in TEXT
    assert judge.LOOKS == 100, "a hundredth of the doubt"


def test_the_example_looks_like_what_is_printed(tmp_path: Path) -> None:
    history = tmp_path / "history.sqlite"
    for number in range(36):
        tails = {"nvme": (50 + number % 3) * (1.4 if number > 32 else 1), "sata": 80 + number % 4}
        result = regress(history, write_night(tmp_path, number, tails))
    shown = DOC.partition("```console\n")[2].partition("```")[0].splitlines()[1:]
    printed = result.output.splitlines()
    assert [_shape(line) for line in printed] == [_shape(line) for line in shown]


def _shape(line: str) -> str:
    """A line without its figures, and as if its columns were as wide as any."""
    return re.sub(r"[\d.,]+", "0", " ".join(line.split()))


def _keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(_keys, value.values()))
    return set().union(*map(_keys, value)) if isinstance(value, list) else set()
