"""`precondition`: which volumes are filled, how far, when they are steady, and what is kept of it."""

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.common.errors import SettingsError
from plimsoll.common.files import append_line
from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment.check import VolumeUses, collect_claims
from plimsoll.lab.experiment.design import find_key_changes, left_out, preconditioned_rigs
from plimsoll.lab.experiment.folder import make_folder
from plimsoll.lab.experiment.labfile import Lab
from plimsoll.lab.experiment.machines import Machines
from plimsoll.lab.experiment.plan import expected_s
from plimsoll.lab.experiment.rig import build_rigs
from plimsoll.lab.experiment.run import precondition_facts
from plimsoll.lab.experiment.status.text import lines
from plimsoll.lab.experiment.status.watch import StatusReader
from plimsoll.lab.experiment.volumes import VolumeFilling, is_finished, judge_round
from plimsoll.lab.fileio import precondition
from plimsoll.lab.fileio.precondition import PreconditionSettings, check_size, filling_bytes, steadiness
from plimsoll.rundir.volumes import VolumeRound, last_filling, read_rounds
from tests.support.labfile import parse_lab
from tests.support.programs import DOCS
from tests.support.scripted import VOLUMES, ScriptedMachine

GIB = 1 << 30
STEADY = [
    ("five that are equal", [100, 100, 100, 100, 100], True),
    ("only four", [100, 100, 100, 100], None),
    ("all stand still", [0, 0, 0, 0, 0], None),
    ("a range of just 20 % of the average", [100, 110, 90, 100, 100], True),
    ("a range of more", [100, 111, 90, 100, 99], False),
    ("a slope of just 10 %, within the range", [95, 97.5, 100, 102.5, 105], True),
    ("a slope of more, within the range", [92, 96, 100, 104, 108], False),
    ("falling as steeply", [108, 104, 100, 96, 92], False),
    ("what was before the last five does not count", [900, 500, 100, 101, 99, 100, 100], True),
    ("a spike that has not left the window", [900, 100, 101, 99, 100], False),
]


@pytest.mark.parametrize(("values", "steady"), [row[1:] for row in STEADY], ids=[row[0] for row in STEADY])
def test_a_volume_is_steady_as_snia_has_it(values: list[float], steady: bool | None) -> None:
    found = steadiness(values)
    assert (found and found.steady) is steady


def test_range_and_slope_are_in_percent_of_the_average() -> None:
    found = steadiness([92, 96, 100, 104, 108])
    assert found
    assert [found.range_percent, found.slope_percent] == pytest.approx([16, 16])


FILLINGS = [
    ("an empty volume", (80, 0, 100 * GIB, 1), 80 * GIB),
    ("one that holds a clone already", (80, 30 * GIB, 70 * GIB, 1), 50 * GIB),
    ("one that two share", (80, 20 * GIB, 80 * GIB, 2), 30 * GIB),
    ("whole MiB", (50, 0, 3 << 20, 1), 1 << 20),
]


@pytest.mark.parametrize(("of", "size"), [row[1:] for row in FILLINGS], ids=[row[0] for row in FILLINGS])
def test_the_filling_is_what_lacks_of_the_share(of: tuple[int, int, int, int], size: int) -> None:
    assert filling_bytes(*of) == size


def test_a_volume_that_is_full_and_a_quota_are_reported_with_the_key() -> None:
    with pytest.raises(LabError, match=r"precondition.fill_percent: the volume is 80 % full already"):
        check_size(filling_bytes(80, 90 * GIB, 10 * GIB, 1), GIB, 80)
    with pytest.raises(
        LabError, match=r"2048 MiB are to be written and 1024 MiB are free .* raise the quota"
    ):
        check_size(2 * GIB, GIB, 80)


def answer(iops: float = 1000.0, io_bytes: int = 64 << 20, error: int = 0) -> str:
    """What fio 3.33 prints with --output-format=json, as far as it is read."""
    reported = {"io_bytes": io_bytes, "bw_bytes": 4096 * iops, "iops": iops, "runtime": 60_001}
    slow = {"percentile": {"50.000000": 100_000, "99.900000": 12_345_678}}
    job = {"jobname": "plimsoll-round", "error": error, "write": reported | {"clat_ns": slow}}
    return json.dumps({"fio version": "fio-3.33", "jobs": [job]}, indent=2) + "\n"


def test_what_fio_prints_is_read_also_after_its_notes() -> None:
    wanted = precondition.Written(64 << 20, 60.001, 1000.0, 3.91, 12.346)
    assert precondition.parse_written(answer()) == wanted
    assert precondition.parse_written("fio: this platform does not support {x}\n" + answer()) == wanted


DAMAGED = [
    ("nothing", ""),
    ("cut off", answer()[:100]),
    ("no job", '{\n"jobs": []}'),
    ("two jobs", json.dumps({"jobs": [1, 2]})),
    ("no numbers", answer().replace("60001", '"x"')),
    ("no object", "[]"),
]


@pytest.mark.parametrize("output", [row[1] for row in DAMAGED], ids=[row[0] for row in DAMAGED])
def test_what_is_no_result_of_fio_is_reported(output: str) -> None:
    with pytest.raises(LabError, match="cannot parse what fio prints"):
        precondition.parse_written(output)


def test_an_error_within_fio_is_one() -> None:
    with pytest.raises(LabError, match="fio ended with error 28"):
        precondition.parse_written(answer(error=28))


def test_fio_gets_no_path_and_a_round_makes_no_file() -> None:
    words = precondition.overwrite("/a:b", GIB, True, PreconditionSettings())
    assert words[:3] == ["env", "--chdir=/a:b", "fio"]
    assert "--filename=data" in words and "--allow_file_create=0" in words
    assert "--direct=0" in precondition.fill("/a", GIB, False)


def lab_of(wanted: dict[str, Any] | None, *backends: str, **more: Any) -> Lab:
    data: dict[str, Any] = {
        "name": "volumes",
        "backends": [VOLUMES[name] for name in backends],
        "scenarios": [{"scenario": "replay", "options": {"log": "access.log"}}],
    }
    data |= {} if wanted is None else {"precondition": wanted}
    return parse_lab(yaml.safe_dump(data | more, sort_keys=False))


MISTAKES = [
    ("a backend that does not exist", {"backends": ["nvme"]}, ("zfs",), "nvme is not one of backends: zfs"),
    ("a backend without a disk", {"backends": ["bare"]}, ("zfs", "bare"), "bare has no disk to fill"),
    ("nothing to fill", {}, ("bare", "placed"), "precondition: has no volume to fill"),
    ("to the brim", {"fill_percent": 99}, ("zfs",), "precondition.fill_percent"),
    ("less time than a round", {"round_s": 60, "longest_s": 30}, ("zfs",), "shorter than one round (60 s)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "backends", "says"), [r[1:] for r in MISTAKES], ids=[r[0] for r in MISTAKES]
)
def test_mistakes_are_reported_with_their_key(
    wanted: dict[str, Any], backends: tuple[str, ...], says: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        lab_of(wanted, *backends)
    assert says in str(caught.value)
    assert "(see docs/" in str(caught.value)


def test_a_site_that_exists_is_filled_only_where_it_is_named_and_what_is_left_is_reported() -> None:
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
def test_a_volume_that_never_is_steady_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert preconditioned_rigs(parse_lab(example)) == [
        "sata",
        "nvme",
    ]


def test_status_reports_the_volumes(tmp_path: Path) -> None:
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
