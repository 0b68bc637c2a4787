"""`precondition` in lab.yml: on which volumes, for how long, and what is kept of it."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.common.errors import SettingsError
from plimsoll.common.files import append_line
from plimsoll.common.validation import parse_model
from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment.check import VolumeUses, collect_claims
from plimsoll.lab.experiment.design import find_key_changes, left_out, preconditioned_rigs
from plimsoll.lab.experiment.folder import make_folder
from plimsoll.lab.experiment.labfile import MANUAL, Lab
from plimsoll.lab.experiment.machines import Machines
from plimsoll.lab.experiment.plan import expected_s
from plimsoll.lab.experiment.problems import key_problems
from plimsoll.lab.experiment.rig import build_rigs
from plimsoll.lab.experiment.run import precondition_facts
from plimsoll.lab.experiment.status.text import lines
from plimsoll.lab.experiment.status.watch import StatusReader
from plimsoll.lab.experiment.volumes import VolumeFilling, is_finished, judge_round
from plimsoll.lab.fileio.precondition import PreconditionSettings
from plimsoll.rundir.volumes import VolumeRound, last_filling, read_rounds
from tests.support.programs import DOCS
from tests.support.scripted import ScriptedMachine
from tests.unit.lab.test_lab_fileio import BACKENDS, untuned
from tests.unit.lab.test_precondition_fio import answer

__all__ = ["untuned"]

GIB = 1 << 30


def lab_of(wanted: dict[str, Any] | None, *backends: str, **more: Any) -> Lab:
    data: dict[str, Any] = {
        "name": "volumes",
        "backends": [BACKENDS[name] for name in backends],
        "scenarios": [{"scenario": "replay", "options": {"log": "access.log"}}],
    }
    data |= {} if wanted is None else {"precondition": wanted}
    return parse_model(yaml.safe_dump(data | more, sort_keys=False), "lab.yml", Lab, MANUAL, key_problems)


MISTAKES = [
    ("a backend that there is not", {"backends": ["nvme"]}, ("zfs",), "nvme is not one of backends: zfs"),
    ("a backend without a disk", {"backends": ["bare"]}, ("zfs", "bare"), "bare has no disk to fill"),
    ("nothing to fill", {}, ("bare", "placed"), "precondition: has no volume to fill"),
    ("to the brim", {"fill_percent": 99}, ("zfs",), "precondition.fill_percent"),
    ("less time than a round", {"round_s": 60, "longest_s": 30}, ("zfs",), "shorter than one round (60 s)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "backends", "says"), [r[1:] for r in MISTAKES], ids=[r[0] for r in MISTAKES]
)
def test_mistakes_are_told_with_their_key(
    wanted: dict[str, Any], backends: tuple[str, ...], says: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        lab_of(wanted, *backends)
    assert says in str(caught.value)
    assert "(see docs/" in str(caught.value)


def test_a_site_that_exists_is_filled_only_where_it_is_named_and_what_is_left_is_told() -> None:
    lab = lab_of({}, "zfs", "tank", "bare", "placed")
    assert preconditioned_rigs(lab) == ["zfs", "tank"]
    assert left_out(lab) == [
        "precondition leaves bare as it is: it has no disk in lab.yml",
        "precondition leaves placed as it is, which exists: name it in precondition.backends if its "
        "volume may be filled",
    ]
    assert preconditioned_rigs(lab_of({"backends": ["placed"]}, "zfs", "placed")) == ["placed"]


def test_it_cannot_be_changed_within_an_experiment() -> None:
    (change,) = find_key_changes(lab_of(None, "zfs"), lab_of({}, "zfs"))
    assert change.key == "precondition"
    assert change.refusal and "could not be compared" in change.refusal


def test_a_plan_counts_the_filling_and_five_rounds() -> None:
    before, after = (
        expected_s(lab_of(None, "zfs")),
        expected_s(lab_of({"fill_percent": 50, "round_s": 60}, "zfs")),
    )
    assert before and after
    assert after - before == pytest.approx(5 * 61 + GIB / 2 / 200e6)


FILLED = VolumeRound(
    volume="tank",
    filling="one",
    round=0,
    fill_percent=80,
    block_bytes=4096,
    threads=4,
    bytes=5 * GIB,
    seconds=30.0,
    mib_per_s=170.0,
)


def other(**values: str) -> VolumeRound:
    """The filling of another volume, or another filling."""
    return FILLED.model_copy(update=values)


def after(*iops: float, of: VolumeRound = FILLED) -> list[VolumeRound]:
    """The filling, and rounds with so many IOPS, each of 60 s."""
    found = [of]
    for number, each in enumerate(iops, 1):
        said = judge_round(found, each)
        found.append(
            of.model_copy(update={"round": number, "bytes": 1, "seconds": 60.0, "iops": each, **said})
        )
    return found


ENDS = [
    ("before the filling", [], PreconditionSettings(), False),
    ("filled", after(), PreconditionSettings(), False),
    ("four rounds", after(1, 1, 1, 1), PreconditionSettings(), False),
    ("five that are steady", after(10, 10, 10, 10, 10), PreconditionSettings(), True),
    ("five that are not", after(50, 40, 30, 20, 10), PreconditionSettings(), False),
    ("as many as there may be", after(50, 40, 30, 20, 10), PreconditionSettings(most_rounds=5), True),
    ("as long as it may take, with one more", after(5, 4), PreconditionSettings(longest_s=209), True),
    ("not yet as long", after(5, 4), PreconditionSettings(longest_s=210), False),
]


@pytest.mark.parametrize(
    ("rounds", "wanted", "over"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS]
)
def test_rounds_end(rounds: list[VolumeRound], wanted: PreconditionSettings, over: bool) -> None:
    assert is_finished(rounds, wanted) is over


def test_the_table_keeps_every_round_and_counts_those_of_the_last_filling(tmp_path: Path) -> None:
    path = tmp_path / "precondition.jsonl"
    for one in [*after(10, 10, of=other(filling="zero")), *after(30)]:
        append_line(path, one.model_dump())
    with path.open("a") as file:
        file.write('{"volume": "tank", "round": 9}\n[]\n{"volume": "tan')
    append_line(path, other(volume="zfs").model_dump())
    every = read_rounds(path)
    assert len(every) == 6, "what is no round, or half a one, is left out"
    assert [(one.filling, one.round) for one in last_filling(every, "tank")] == [("one", 0), ("one", 1)]
    assert last_filling(every, "nvme") == []
    assert precondition_facts([]) == {}
    assert precondition_facts(after(30))["precondition"] == {
        "fill_percent": 80, "block_bytes": 4096, "threads": 4, "rounds": 1, "steady": False,
    }  # fmt: skip


class Fiddled:
    """A machine with a volume of 100 GiB, whose fio gives one IOPS after the other."""

    def __init__(self, *iops: float, there: str = "", fails: int = 0) -> None:
        self.iops, self.there, self.fails = list(iops), there, fails
        self.machine = ScriptedMachine(self._answer)

    def _answer(self, words: Sequence[str]) -> tuple[int, str, str]:
        if "df" in words:
            return (
                0,
                " Used Avail\n 0 107374182400\n" if "--output=used,avail" in words else "Avail\n9" * 2,
                "",
            )
        if "fio" in words:
            fill = "--rw=write" in words
            size = next(int(word.partition("=")[2]) for word in words if word.startswith("--size="))
            text = answer(io_bytes=size) if fill else answer(self.iops.pop(0))
            return (self.fails, "", "fio: pid 7: No space left\n") if self.fails else (0, text, "")
        if "stat -c %s" in " ".join(words):
            return 0, self.there, ""
        return 0, "", ""

    @property
    def fio(self) -> list[str]:
        """What fio was told to do, in order."""
        return [word for words in self.machine.ran if "fio" in words for word in words if "--rw=" in word]


async def brought_about(
    on: Fiddled, lab: Lab, out: Path, kept: Sequence[VolumeRound] = ()
) -> tuple[Path, list[str]]:
    folder, said, machines = make_folder(lab.model_copy(update={"out": out})), list[str](), Machines(lab)
    for one in kept:
        append_line(folder.rounds, one.model_dump())
    (rig,) = await build_rigs(lab, machines, lambda *_: None)
    rig.machine = on.machine
    rig.forget()
    try:
        await VolumeFilling(lab, folder, said.append).fill_if_due(rig)
    finally:
        await machines.close()
    return folder.rounds, said


def room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.lab.experiment.volumes.check_size", lambda *_: None)


@pytest.mark.usefixtures("untuned")
def test_rounds_go_on_until_five_are_steady(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room(monkeypatch)
    on = Fiddled(9000, 4000, 2000, 1010, 1000, 990, 1000, 1000, 7)
    path, said = asyncio.run(brought_about(on, lab_of({}, "tank"), tmp_path))
    assert on.fio == ["--rw=write"] + 8 * ["--rw=randwrite"]
    assert said[-1] == "tank: its volume is steady after 8 rounds."
    rounds = read_rounds(path)
    assert [one.steady for one in rounds] == [None] * 5 + [False, False, False, True]
    assert rounds[0].bytes == 80 * GIB
    assert {one.filling for one in rounds} == {rounds[0].filling}


@pytest.mark.usefixtures("untuned")
def test_a_volume_that_never_is_steady_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room(monkeypatch)
    on = Fiddled(*(10.0 * 2**i for i in range(9)))
    _, said = asyncio.run(brought_about(on, lab_of({"most_rounds": 6}, "tank"), tmp_path))
    assert said[-1].startswith("tank: its volume is not steady after 6 rounds; the runs begin anyway")


ROUND = "--rw=randwrite"
ANEW = ["--rw=write"] + 5 * [ROUND]
RESUMED = [
    ("the filling of the table: it goes on", "one 5368709120", after(10, 10, 10), 2 * [ROUND]),
    ("steady already: nothing is done", "one 5368709120", after(10, 10, 10, 10, 10), []),
    ("another's: anew", "two 5368709120", after(10, 10, 10), ANEW),
    ("half of it, without a name", "", after(10, 10, 10, 10, 10), ANEW),
    ("no table knows it", "one 5368709120", [], ANEW),
]  # fmt: skip


@pytest.mark.usefixtures("untuned")
@pytest.mark.parametrize(("there", "kept", "done"), [r[1:] for r in RESUMED], ids=[r[0] for r in RESUMED])
def test_what_a_crash_left_is_taken_over(
    there: str, kept: list[VolumeRound], done: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room(monkeypatch)
    on = Fiddled(*9 * [10.0], there=there)
    asyncio.run(brought_about(on, lab_of({}, "tank"), tmp_path, kept))
    assert on.fio == done


@pytest.mark.usefixtures("untuned")
def test_a_failure_keeps_the_backend_from_being_run_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room(monkeypatch)
    with pytest.raises(LabError, match=r"precondition: .*ended with status 1: fio: pid 7: No space left"):
        asyncio.run(brought_about(Fiddled(fails=1), lab_of({}, "tank"), tmp_path))
    with pytest.raises(LabError, match="fio is not installed: apt-get install fio"):
        asyncio.run(brought_about(Fiddled(fails=127), lab_of({}, "tank"), tmp_path / "other"))


async def claimed(lab: Lab) -> list[tuple[str, str, int]]:
    machines = Machines(lab)
    try:
        rigs = await build_rigs(lab, machines, lambda *_: None)
        for rig in rigs:
            rig.machine = ScriptedMachine(_df)
            rig.golden = None
        uses = VolumeUses({}, dict.fromkeys(preconditioned_rigs(lab), 80))
        return [
            (one.backend, one.key, one.bytes) for one in await collect_claims(rigs, uses) if "fill" in one.key
        ]
    finally:
        await machines.close()


def _df(words: Sequence[str]) -> tuple[int, str, str]:
    if "--output=used,avail" in words:
        return 0, "Used Avail\n10 90\n", ""
    if words[:1] == ["du"] or words[:1] == ("du",):
        return 0, "20\t/golden\n", ""
    return 0, "/tank/lab\n/dev/sda1 ext4 100 10 90 10% /tank\n", ""


def test_room_is_looked_for_and_the_clone_counts_as_filling() -> None:
    key = "precondition.fill_percent"
    assert asyncio.run(claimed(lab_of({}, "tank"))) == [("tank", key, 80 - 10 - 20)]
    made = asyncio.run(claimed(lab_of({}, "zfs")))
    assert made == [("zfs", key, 80 * GIB // 100 - 20)], "all of a disk that is still to be made"


def test_the_example_of_the_docs_is_right() -> None:
    text = (DOCS / "precondition.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert preconditioned_rigs(parse_model(example, "docs/precondition.md", Lab, MANUAL, key_problems)) == [
        "sata",
        "nvme",
    ]


def test_status_tells_of_the_volumes(tmp_path: Path) -> None:
    folder = make_folder(lab_of({}, "zfs", "tank", out=str(tmp_path)))
    for one in after(10, 10, 10, 10, 10):
        append_line(folder.rounds, one.model_dump())
    append_line(folder.rounds, other(volume="zfs").model_dump())
    folder.journal.path.touch()
    with folder.journal.lock():
        folder.journal.note("begun")
        folder.journal.note("precondition round", backend="zfs", says="round 1 of at most 25")
        look = StatusReader(folder).read()
    assert look.now and look.now.what == "preconditioning"
    assert look.precondition
    assert look.precondition.model_dump() == {
        "volumes": 2, "done": 1, "steady": 1, "rounds": {"zfs": 0, "tank": 5},
    }  # fmt: skip
    said = "\n".join(lines(look))
    assert "preconditioning zfs: round 1 of at most 25" in said
    assert "filled     1 of 2 volumes done, 1 steady" in said
