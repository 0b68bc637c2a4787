"""Applying a tuning, and putting it back from the journal wherever the program died."""

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.steps.runner import StepRunner
from plimsoll.lab.tuning import JournalPlace, Tuning, apply_tuning, put_back, put_back_all
from plimsoll.lab.tuning.apply import (
    TuningJournal,
    find_journals,
    parse_journal,
    plan_for_host,
    read_journal,
    remove_journal,
    write_journal,
)
from plimsoll.lab.tuning.keys import PropertyValue, VmValue, ZfsValue
from plimsoll.lab.tuning.plan import TuningError
from tests.support.scripted import PARAMETERS, PLACE, QUEUE, TunedHost, host_to_tune

FULL = {
    "disks": {"vda": {"scheduler": "none", "read_ahead_kb": 128}},
    "transparent_hugepage": "never",
    "datasets": {"tank/site": {"compression": "off", "sync": "disabled", "atime": "on"}},
    "zfs": {"zfs_txg_timeout": 1},
    "vm": {"dirty_bytes": "64M"},
}


def test_a_tuning_is_applied_and_put_back() -> None:
    async def run() -> tuple[TunedHost, list[str], list[str]]:
        host = host_to_tune()
        await apply_tuning(host, Tuning.model_validate(FULL), PLACE)
        applied = host.changes
        host.ran.clear()
        await put_back(host, PLACE)
        assert PLACE.path not in host.files
        back = host.changes
        host.ran.clear()
        await put_back(host, PLACE)
        assert host.changes == [], "a second time nothing is left to do"
        return host, applied, back

    host, applied, back = asyncio.run(run())
    assert applied == [
        f"tee {QUEUE}/scheduler",
        f"tee {QUEUE}/read_ahead_kb",
        "tee /sys/kernel/mm/transparent_hugepage/enabled",
        "zfs set compression=off tank/site",
        "zfs set atime=on tank/site",
        "zfs set sync=disabled tank/site",
        f"tee {PARAMETERS}/zfs_txg_timeout",
        "tee /proc/sys/vm/dirty_bytes",
    ]
    assert "zfs inherit compression tank/site" in back
    assert "zfs set atime=off tank/site" in back
    assert "zfs inherit -S sync tank/site" in back
    assert host.files[f"{QUEUE}/scheduler"] == "mq-deadline\n"
    assert host.files["/proc/sys/vm/dirty_ratio"] == "20\n"


def test_the_journal_is_there_before_anything_changes_and_no_second_one_replaces_it() -> None:
    host = host_to_tune()
    seen: list[bool] = []

    def look(command: tuple[str, ...], _stdin: bytes | None) -> bool:
        if command[0] == "tee":
            seen.append(PLACE.path in host.files)
        return False

    host.refuses = look
    asyncio.run(apply_tuning(host, Tuning.model_validate(FULL), PLACE))
    assert seen
    assert all(seen)
    kept = host.files[PLACE.path]
    other = Tuning.model_validate({"vm": {"swappiness": 1}})
    with pytest.raises(TuningError, match="an earlier tuning was not put back"):
        asyncio.run(apply_tuning(host, other, PLACE))
    assert host.files[PLACE.path] == kept
    assert host.files["/proc/sys/vm/swappiness"] == "60\n"


def test_a_setting_that_is_refused_puts_all_back() -> None:
    host = host_to_tune()
    host.refuses = lambda command, stdin: stdin == b"never\n"
    with pytest.raises(
        TuningError, match=r"^transparent_hugepage: cannot be set to never, so nothing was changed"
    ):
        asyncio.run(apply_tuning(host, Tuning.model_validate(FULL), PLACE))
    assert host.files[f"{QUEUE}/scheduler"] == "mq-deadline\n"
    assert PLACE.path not in host.files


def test_a_crash_at_any_step_can_be_undone() -> None:
    """The journal alone is enough, wherever the program died."""
    tuning = Tuning.model_validate(FULL)
    whole = asyncio.run(plan_for_host(host_to_tune(), tuning))
    for died_after in range(len(whole.apply) + 1):
        host = host_to_tune()
        before = dict(host.files)
        host.files[PLACE.path] = TuningJournal(by="x", put_back=whole.put_back).model_dump_json()
        for step in whole.apply_steps[:died_after]:
            asyncio.run(StepRunner(host).do([step]))
        asyncio.run(put_back(host, PLACE))
        for path in (f"{QUEUE}/nr_requests", f"{PARAMETERS}/zfs_txg_timeout", "/proc/sys/vm/dirty_ratio"):
            assert host.files[path] == before[path]
        assert PLACE.path not in host.files


def test_what_went_away_is_no_problem_and_what_fails_keeps_the_journal() -> None:
    host = host_to_tune()
    asyncio.run(apply_tuning(host, Tuning.model_validate(FULL), PLACE))
    del host.files[f"{QUEUE}/scheduler"], host.files[f"{QUEUE}/read_ahead_kb"]
    host.refuses = lambda command, stdin: stdin == b"madvise\n"
    with pytest.raises(TuningError) as caught:
        asyncio.run(put_back(host, PLACE))
    problem, remedy = str(caught.value).splitlines()[1:]
    assert problem.startswith("transparent_hugepage: ")
    assert "echo madvise | tee /sys/kernel/mm/transparent_hugepage/enabled" in remedy, "the exact command"
    assert remedy.endswith(f"and forget it: rm {PLACE.path}")
    assert host.files["/proc/sys/vm/dirty_ratio"] == "20\n", "it goes on after a failure"
    host.refuses = lambda _command, _stdin: False
    asyncio.run(put_back(host, PLACE))
    assert PLACE.path not in host.files


def test_whoever_uses_the_machine_next_finds_a_tuning_and_says_whose_it_was() -> None:
    host, said = host_to_tune(), list[str]()
    asyncio.run(apply_tuning(host, Tuning.model_validate({"vm": {"swappiness": 1}}), PLACE))
    host.files["/var/lib/plimsoll/tuning/notes.json"] = "somebody's own"
    asyncio.run(put_back_all(host, said.append))
    assert said == [
        "far: is still tuned by experiment lab in /results/lab-1: putting back vm.swappiness = 60"
    ]
    assert host.files["/proc/sys/vm/swappiness"] == "60\n"
    assert [path for path in host.files if "/tuning/" in path] == ["/var/lib/plimsoll/tuning/notes.json"]


DATASETS_GONE = [
    ("a dataset that was destroyed needs nothing", "tank/site", {"zpool list": "tank\n"}, True),
    ("a pool that is exported keeps what was set: say so", "tank/site", {}, False),
    ("a pool of the lab's own goes with its disk", "plimsoll-lab--a/site", {}, True),
]


@pytest.mark.parametrize(
    ("dataset", "answers", "well"), [row[1:] for row in DATASETS_GONE], ids=[row[0] for row in DATASETS_GONE]
)
def test_a_dataset_that_is_not_there(dataset: str, answers: dict[str, str], well: bool) -> None:
    value = PropertyValue(dataset=dataset, name="sync", value="standard", source="inherited")
    host = TunedHost({PLACE.path: TuningJournal(by="x", put_back=(value,)).model_dump_json()}, answers)
    if well:
        asyncio.run(put_back(host, PLACE))
    else:
        with pytest.raises(TuningError, match="its pool is not imported"):
            asyncio.run(put_back(host, PLACE))
    assert (PLACE.path in host.files) != well


JOURNALS = [
    ("no JSON", "{"),
    ("of another format", json.dumps({"format": 2, "by": "x", "put_back": []})),
    (
        "with a path that somebody put there",
        json.dumps(
            {
                "format": 1,
                "by": "x",
                "put_back": [{"kind": "queue", "device": "../../etc", "name": "scheduler", "value": "none"}],
            }
        ),
    ),
    (
        "with a name that may not be tuned",
        json.dumps({"format": 1, "by": "x", "put_back": [{"kind": "vm", "name": "panic", "value": "1"}]}),
    ),
    (
        "with a value of several lines",
        json.dumps({"format": 1, "by": "x", "put_back": [{"kind": "hugepage", "value": "a\nb"}]}),
    ),
]


@pytest.mark.parametrize("text", [row[1] for row in JOURNALS], ids=[row[0] for row in JOURNALS])
def test_a_journal_that_was_tampered_with_does_nothing(text: str) -> None:
    host = host_to_tune()
    host.files[PLACE.path] = text
    with pytest.raises(TuningError, match="is not a tuning journal"):
        asyncio.run(put_back(host, PLACE))
    assert host.changes == []
    assert host.files[PLACE.path] == text


@given(text=st.text())
def test_no_text_in_a_journal_crashes(text: str) -> None:
    with pytest.raises(TuningError):
        parse_journal("journal.json", text)


def test_a_journal_that_cannot_be_written_leaves_all_as_it_was() -> None:
    host = host_to_tune()
    host.refuses = lambda command, stdin: command[-1] == PLACE.path and stdin is not None
    with pytest.raises(TuningError, match="Read-only file system; nothing was tuned"):
        asyncio.run(apply_tuning(host, Tuning.model_validate(FULL), PLACE))
    assert host.changes == []


def test_nothing_is_done_where_nothing_is_wanted() -> None:
    host = host_to_tune()
    before = dict(host.files)
    asyncio.run(apply_tuning(host, Tuning(), PLACE))
    assert host.changes == []
    assert host.files == before


def test_what_was_asked_for_is_reported_with_what_was_there_also_where_nothing_changes() -> None:
    tuning = Tuning.model_validate({"vm": {"swappiness": 60, "dirty_bytes": "64M"}})
    done = asyncio.run(apply_tuning(host_to_tune(), tuning, PLACE))
    assert [(value.key, value.was, value.set) for value in done.asked] == [
        ("vm.swappiness", "60", "60"),
        ("vm.dirty_bytes", "0", "67108864"),
    ]


def test_the_journal_on_a_real_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The very scripts, by a real shell: written whole, once, listed, read, removed."""
    monkeypatch.setattr("plimsoll.lab.tuning.apply.FOLDER", str(tmp_path / "tuning"))
    value = VmValue(name="swappiness", value="60")

    async def run() -> None:
        machine = LocalMachine()
        assert await find_journals(machine) == []
        assert await read_journal(machine, PLACE) is None
        await write_journal(machine, PLACE, [value])
        assert [place.label for place in await find_journals(machine)] == [PLACE.label]
        with pytest.raises(TuningError, match="an earlier tuning was not put back"):
            await write_journal(machine, PLACE, [])
        found = await read_journal(machine, JournalPlace(PLACE.label))
        assert found == TuningJournal(by=PLACE.by, put_back=(value,))
        for _ in range(2):
            await remove_journal(machine, PLACE)
        assert await find_journals(machine) == []
        (tmp_path / "tuning").rmdir()
        (tmp_path / "tuning").write_text("in the way")
        with pytest.raises(TuningError, match=r"cannot be written: .*; nothing was tuned"):
            await write_journal(machine, PLACE, [value])

    asyncio.run(run())


def test_values_are_distinguished_by_kind() -> None:
    journal = TuningJournal(
        by="x",
        put_back=(ZfsValue(name="zfs_txg_timeout", value="5"), VmValue(name="swappiness", value="5")),
    )
    assert TuningJournal.model_validate_json(journal.model_dump_json()) == journal
