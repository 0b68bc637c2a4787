"""`plimsoll regress`: quiet nights are quiet, and what became worse is told, once."""

import copy
import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from plimsoll.cli import main
from tests.support.comparable import folder_of, regress, write_night
from tests.support.rundir import change

QUIET = 100
SPREAD = 0.10


class Lab:
    """Nights, one after the other: written, added, judged."""

    def __init__(self, folder: Path, seed: int = 1, repeats: int = 2, count: int = 1000) -> None:
        self.results, self.history = folder / "results", folder / "history.sqlite"
        self.out = folder / "out"
        self.number = 0
        self._random = np.random.default_rng(seed)
        self._repeats, self._count = repeats, count

    def night(self, *options: str, nvme: float = 1.0, sata: float = 1.0, **more: object) -> tuple[int, str]:
        """The next night, so many times as slow; the exit code and what was printed."""
        tails = {
            name: base * times * float(self._random.lognormal(0, SPREAD))
            for name, base, times in (("nvme", 40, nvme), ("sata", 90, sata))
        }
        settings: dict[str, object] = {"repeats": self._repeats, "count": self._count, **more}
        folder = write_night(self.results, self.number, tails, **settings)  # type: ignore[arg-type]
        self.number += 1
        result = regress(self.history, folder, *options)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.output

    def sent(self) -> list[str]:
        return self.out.read_text().splitlines() if self.out.exists() else []

    def copy_to(self, folder: Path) -> "Lab":
        """A lab of its own with the history of this one, whose nights are the same from here on."""
        folder.mkdir(exist_ok=True)
        made = copy.deepcopy(self)
        made.results, made.history, made.out = folder / "results", folder / "history.sqlite", folder / "out"
        shutil.copy(self.history, made.history)
        return made

    @property
    def notify(self) -> list[str]:
        """A command that writes a line a message."""
        return ["--notify-command", f"""sh -c 'cat >/dev/null; echo "$PLIMSOLL_VERDICT" >>{self.out}'"""]


@pytest.fixture(scope="module")
def thirty(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Thirty quiet nights, none of which is news."""
    lab = Lab(tmp_path_factory.mktemp("thirty"))
    assert {lab.night(*lab.notify)[0] for _ in range(30)} == {0}
    assert lab.sent() == []
    return lab


@pytest.fixture
def quiet(thirty: Lab, tmp_path: Path) -> Lab:
    """A lab that had thirty quiet nights."""
    return thirty.copy_to(tmp_path / "lab")


@pytest.mark.slow
def test_a_hundred_quiet_nights_bring_no_alarm(tmp_path: Path) -> None:
    lab = Lab(tmp_path, repeats=1)
    codes = {}
    for number in range(QUIET):
        baseline = ["--set-baseline", "latest"] if number == 20 else []
        codes[number] = lab.night(*lab.notify, *baseline)[0]
        shutil.rmtree(folder_of(lab.results, number))
    assert set(codes.values()) == {0}, {number: code for number, code in codes.items() if code}
    assert lab.sent() == []


def test_a_regression_is_told_once_and_stays_red(quiet: Lab) -> None:
    lab = quiet
    codes = [lab.night(*lab.notify, nvme=1.5)[0] for _ in range(15)]
    found = codes.index(1)
    assert found in (2, 3, 4)
    assert set(codes[found:]) == {1}, "it is worse until it is mended or accepted"
    assert lab.sent() == ["worse"], "and one message"
    code, output = lab.night(nvme=1.5)
    assert code == 1
    assert "still worse  replay on nvme, whole: p99.9" in output
    assert "steady       replay on sata" in output


@pytest.mark.slow
def test_the_news_says_what_else_changed(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    host = {"hostname": "generator", "kernel": "6.1.0"}
    for _ in range(30):
        lab.night(host=host)
    code, output = 0, ""
    while code == 0:
        assert lab.number < 40
        code, output = lab.night(nvme=2.0, host=host | {"kernel": "6.8.0"})
    said = " ".join(output.split())
    assert "replay on nvme: since then these differ, too: host.kernel (6.1.0 → 6.8.0)." in said
    assert "replay on sata: since" not in said


def test_news_is_not_lost_with_whoever_found_it(quiet: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise SystemExit(137)

    lab = quiet
    with monkeypatch.context() as patch:
        patch.setattr("plimsoll.analysis.regress.store.announce", killed)
        while lab.night(*lab.notify, nvme=2.0)[0] != 137:
            assert lab.number < 40
    assert lab.night(*lab.notify, nvme=2.0)[0] == 1
    assert lab.sent() == ["worse"]


def test_judged_again_the_same_night_says_the_same_and_sends_nothing(quiet: Lab) -> None:
    lab = quiet
    while lab.night(*lab.notify, nvme=2.0)[0] == 0:
        assert lab.number < 40
    first = regress(lab.history, "--json", *lab.notify)
    again = regress(lab.history, "--json", *lab.notify)
    assert first.exit_code == again.exit_code == 1
    assert first.stdout == again.stdout
    assert lab.sent() == ["worse"]


def test_what_moves_every_backend_is_one_message(quiet: Lab) -> None:
    lab = quiet
    for _ in range(12):
        lab.night(*lab.notify, nvme=1.6, sata=1.6)
    assert lab.sent() == ["worse"]


def test_an_improvement_is_told_and_is_no_alarm(quiet: Lab) -> None:
    lab = quiet
    nights = [lab.night(*lab.notify, nvme=0.5) for _ in range(8)]
    assert {code for code, _ in nights} == {0}
    assert sum("\nbetter " in output for _, output in nights) == 1
    assert lab.sent() == []


@pytest.mark.slow
def test_a_second_regression_is_news_again(quiet: Lab) -> None:
    lab = quiet
    for times in [1.6] * 20 + [2.6] * 12:
        lab.night(*lab.notify, nvme=times)
    assert lab.sent() == ["worse", "worse"]


@pytest.mark.slow
def test_the_baseline_finds_what_creeps(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    for _ in range(14):
        lab.night()
    _, output = lab.night("--set-baseline", "latest")
    assert "Since then there are 0 nights of replay, and a verdict takes 4: 4 more." in " ".join(
        output.split()
    )
    codes = [lab.night(*lab.notify, nvme=min(1 + 0.02 * number, 1.5))[0] for number in range(45)]
    assert codes[-1] == 1
    assert lab.sent() == ["worse"], "the change point and the baseline tell one regression once"
    document = json.loads(regress(lab.history, "--json").stdout)
    verdicts = {
        (gate["backend"], gate["metric"]): gate["verdict"] for gate in document["experiments"][0]["gates"]
    }
    assert verdicts["nvme", "p99.9"] == "FAIL"
    assert verdicts["sata", "error share"] == "PASS"
    assert regress(lab.history, "--set-baseline", "latest").exit_code == 0, "it is the new level"


def test_a_baseline_that_is_new_grows_until_it_is_long_enough(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.night("--set-baseline", "latest")
    for _ in range(17):
        lab.night()
    document = json.loads(regress(lab.history, "--json").stdout)["experiments"][0]
    assert len(document["baseline"]) == 14
    assert document["gates"][0]["nights"] == {"baseline": 14, "candidate": 4}


def test_limits_of_ones_own_are_asked(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    gates = tmp_path / "gates.yml"
    gates.write_text("gates:\n  - {scenario: replay, metric: p50, at_most_ratio: 1.2}\n")
    for _ in range(5):
        lab.night()
    lab.night("--set-baseline", "latest", "--gates", str(gates))
    document = json.loads(regress(lab.history, "--json", "--gates", str(gates)).stdout)["experiments"][0]
    assert [(gate["backend"], gate["metric"]) for gate in document["gates"]] == [
        ("nvme", "p50"),
        ("sata", "p50"),
    ]
    gates.write_text("gates: []\n")
    assert regress(lab.history, "--gates", str(gates)).exit_code == 2


UNFIT = [
    ("the load generator limited it", {"generator_limited": True}, "was limited by the load generator"),
    ("it failed", {"status": "failed", "reason": "no route"}, "failed (no route)"),
    ("it was interrupted", {"status": "interrupted"}, "was interrupted"),
]


@pytest.mark.parametrize(("what", "facts", "says"), UNFIT, ids=[row[0] for row in UNFIT])
def test_a_night_of_unfit_runs_cannot_be_judged(
    tmp_path: Path, what: str, facts: dict[str, Any], says: str
) -> None:
    lab = Lab(tmp_path)
    for _ in range(3):
        lab.night()
    code, output = lab.night(*lab.notify, **facts)
    assert code == 3, what
    assert says in " ".join(output.split())
    assert lab.sent() == ["unjudged"]
    assert lab.night(*lab.notify)[0] == 0, "and is in no series"
    series = json.loads(regress(lab.history, "--json").stdout)["experiments"][0]["series"]
    assert {each["nights"] for each in series} == {4}
    assert lab.sent() == ["unjudged"]


def test_a_night_that_is_not_finished_cannot_be_judged(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.night()
    code, output = lab.night(*lab.notify, planned=6)
    assert (code, lab.sent()) == (3, ["unjudged"])
    assert "has 4 of its 6 runs" in output


def test_a_night_without_any_run_cannot_be_judged(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.night()
    folder = folder_of(lab.results, 1)
    (folder / "runs").mkdir(parents=True)
    (folder / "lab.json").write_text(
        json.dumps({"name": "nightly", "backends": [{}, {}], "scenarios": [{}], "repeats": 2})
    )
    for _ in range(2):
        result = regress(lab.history, folder, *lab.notify)
        assert result.exit_code == 3
        assert "has no run at all" in result.output
    assert lab.sent() == ["unjudged"]


def test_a_backend_that_is_gone_is_missed(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    for _ in range(3):
        lab.night()
    folder = write_night(lab.results, 3, {"nvme": 40})
    result = regress(lab.history, folder)
    assert result.exit_code == 3
    assert "replay on sata" in result.output.split("cannot be judged")[-1]


def test_one_unfit_repeat_is_named_and_the_others_are_judged(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.night()
    folder = write_night(lab.results, 1, {"nvme": 40, "sata": 90}, repeats=2)
    change(sorted((folder / "runs").iterdir())[0], generator_limited=True)
    result = regress(lab.history, folder)
    assert result.exit_code == 0
    assert "note: 0001-replay--nvme--1 was limited by the load generator" in result.output


def test_two_experiments_of_one_history_are_judged_apart(tmp_path: Path) -> None:
    history = tmp_path / "history.sqlite"
    one = write_night(tmp_path, 0, {"nvme": 40}, lab="one")
    other = write_night(tmp_path, 0, {"nvme": 40}, lab="other", planned=9)
    assert regress(history, one).exit_code == 0
    assert regress(history, other).exit_code == 3
    assert regress(history, one).exit_code == 0, "only what was named is judged"
    assert [each["experiment"] for each in json.loads(regress(history, "--json").stdout)["experiments"]] == [
        "one",
        "other",
    ]


PLACES = [
    ("typo/h.sqlite", ["RUNS"], "typo/h.sqlite: is not there", "a mistyped path with runs"),
    ("typo/h.sqlite", [], "typo/h.sqlite: is not there", "a mistyped path without any"),
    ("there.sqlite", ["RUNS", "--new"], "there.sqlite: is there already", "what is to begin and is there"),
    ("new/h.sqlite", ["--new"], "new/h.sqlite: cannot begin without a run", "nothing to begin with"),
    ("new/h.sqlite", ["RUN", "--new"], "routes.json: is a device", "a run that cannot be read"),
]


@pytest.mark.parametrize(("file", "words", "says", "why"), PLACES, ids=[row[3] for row in PLACES])
def test_a_history_begins_only_where_it_is_told_to(
    tmp_path: Path, file: str, words: list[str], says: str, why: str
) -> None:
    night = write_night(tmp_path, 0, {"nvme": 40})
    assert regress(tmp_path / "there.sqlite", night).exit_code == 0
    spoilt = next((write_night(tmp_path, 1, {"nvme": 40}) / "runs").iterdir())
    (spoilt / "routes.json").unlink()
    (spoilt / "routes.json").symlink_to("/dev/zero")
    named = [{"RUNS": str(night), "RUN": str(spoilt)}.get(word, word) for word in words]
    result = CliRunner().invoke(main, ["regress", "--history", str(tmp_path / file), *named])
    assert (result.exit_code, result.stdout) == (2, ""), why
    assert says in result.stderr
    assert file == "there.sqlite" or not (tmp_path / file).parent.exists(), "nothing is left behind"


def test_a_history_without_a_night_says_so(tmp_path: Path) -> None:
    (tmp_path / "history.sqlite").touch()
    result = regress(tmp_path / "history.sqlite")
    assert (result.exit_code, "no night yet" in result.output) == (0, True)


def test_a_baseline_that_is_no_night_is_refused(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.night()
    result = regress(lab.history, "--set-baseline", "yesterday")
    assert result.exit_code == 2
    assert "the last ones are: nightly-20260101T020000Z" in result.stderr


def test_without_otava_it_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "otava.analysis", None)
    result = regress(tmp_path / "history.sqlite")
    assert result.exit_code == 2
    assert "pip install 'plimsoll[regress]'" in result.stderr
    assert not (tmp_path / "history.sqlite").exists()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_slower_night_never_turns_fail_into_pass(tmp_path: Path, seed: int) -> None:
    """The same history, but that its last night is slower: no gate gets a better verdict."""
    order = ["PASS", "INCONCLUSIVE", "FAIL"]
    verdicts = []
    for worse in (1.0, 1.3, 3.0):
        folder = tmp_path / f"{worse}"
        lab = Lab(folder, seed=seed, repeats=1)
        for number in range(24):
            lab.night(
                *(["--set-baseline", "latest"] if number == 16 else []), nvme=1.3 if number > 16 else 1.0
            )
        lab.night(nvme=1.3 * worse)
        gates = json.loads(regress(lab.history, "--json").stdout)["experiments"][0]["gates"]
        verdicts.append([order.index(gate["verdict"]) for gate in gates if gate["backend"] == "nvme"])
    for quicker, slower in pairwise(verdicts):
        for one, other in zip(quicker, slower, strict=True):
            assert not (one == 2 and other == 0)
