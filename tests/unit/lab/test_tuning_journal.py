"""Applying a tuning, and putting it back from the journal wherever the program died."""

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.tuning import Tuning, TuningError, apply, put_back
from lab.tuning.apply import planned
from lab.tuning.journal import TuningJournal, read_journal
from lab.tuning.values import PropertyValue, VmValue, ZfsValue
from tests.support.fakemachine import FakeMachine
from tests.support.tunedhost import PARAMETERS, QUEUE, host_to_tune

FULL = {
    "disks": {"vda": {"scheduler": "none", "read_ahead_kb": 128}},
    "transparent_hugepage": "never",
    "datasets": {"tank/site": {"compression": "off", "sync": "disabled", "atime": "on"}},
    "zfs": {"zfs_txg_timeout": 1},
    "vm": {"dirty_bytes": "64M"},
}


def test_a_tuning_is_applied_and_put_back(tmp_path: Path) -> None:
    async def run() -> tuple[FakeMachine, list[str], list[str]]:
        host, journal = host_to_tune(), tmp_path / "tuning.json"
        await apply(host, Tuning.model_validate(FULL), journal)
        applied = host.changes
        assert journal.stat().st_mode & 0o777 == 0o600
        host.ran.clear()
        await put_back(host, journal)
        assert not journal.exists()
        back = host.changes
        host.ran.clear()
        await put_back(host, journal)
        assert host.ran == [], "a second time there is nothing to do"
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


def test_the_journal_is_there_before_anything_changes_and_no_second_one_replaces_it(tmp_path: Path) -> None:
    journal = tmp_path / "tuning.json"
    host = host_to_tune()
    seen: list[bool] = []

    def look(command: tuple[str, ...], _stdin: bytes | None) -> bool:
        if command[0] == "tee":
            seen.append(journal.exists())
        return False

    host.refuses = look
    asyncio.run(apply(host, Tuning.model_validate(FULL), journal))
    assert seen
    assert all(seen)
    kept = journal.read_bytes()
    with pytest.raises(TuningError, match="an earlier tuning was not put back"):
        asyncio.run(apply(host_to_tune(), Tuning.model_validate(FULL), journal))
    assert journal.read_bytes() == kept
    assert [path.name for path in tmp_path.iterdir()] == ["tuning.json"]


def test_a_setting_that_is_refused_puts_all_back(tmp_path: Path) -> None:
    host = host_to_tune()
    host.refuses = lambda command, stdin: stdin == b"never\n"
    with pytest.raises(
        TuningError, match=r"^transparent_hugepage: cannot be set to never, so nothing was changed"
    ):
        asyncio.run(apply(host, Tuning.model_validate(FULL), tmp_path / "tuning.json"))
    assert host.files[f"{QUEUE}/scheduler"] == "mq-deadline\n"
    assert list(tmp_path.iterdir()) == []


def test_a_crash_at_any_step_can_be_undone(tmp_path: Path) -> None:
    """The journal alone is enough, wherever the program died."""
    tuning = Tuning.model_validate(FULL)
    whole = asyncio.run(planned(host_to_tune(), tuning))
    for died_after in range(len(whole.apply) + 1):
        host, journal = host_to_tune(), tmp_path / f"{died_after}.json"
        before = dict(host.files)
        journal.write_text(TuningJournal(machine="far", put_back=whole.put_back).model_dump_json())
        for step in whole.apply_steps[:died_after]:
            asyncio.run(host.run(step.command, stdin=None if step.stdin is None else step.stdin.encode()))
        asyncio.run(put_back(host, journal))
        for path in (f"{QUEUE}/nr_requests", f"{PARAMETERS}/zfs_txg_timeout", "/proc/sys/vm/dirty_ratio"):
            assert host.files[path] == before[path]
        assert not journal.exists()


def test_what_went_away_is_no_problem_and_what_fails_keeps_the_journal(tmp_path: Path) -> None:
    host, journal = host_to_tune(), tmp_path / "tuning.json"
    asyncio.run(apply(host, Tuning.model_validate(FULL), journal))
    del host.files[f"{QUEUE}/scheduler"], host.files[f"{QUEUE}/read_ahead_kb"]
    host.refuses = lambda command, stdin: stdin == b"madvise\n"
    with pytest.raises(TuningError) as caught:
        asyncio.run(put_back(host, journal))
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()[1:]] == ["transparent_hugepage"]
    assert host.files["/proc/sys/vm/dirty_ratio"] == "20\n", "it goes on after a failure"
    host.refuses = lambda _command, _stdin: False
    asyncio.run(put_back(host, journal))
    assert not journal.exists()


DATASETS_GONE = [
    ("a dataset that was destroyed needs nothing", {"zpool list": "tank\n"}, True),
    ("a pool that is exported keeps what was set: say so", {}, False),
]


@pytest.mark.parametrize(
    ("answers", "well"), [row[1:] for row in DATASETS_GONE], ids=[row[0] for row in DATASETS_GONE]
)
def test_a_dataset_that_is_not_there(answers: dict[str, str], well: bool, tmp_path: Path) -> None:
    journal = tmp_path / "tuning.json"
    value = PropertyValue(dataset="tank/site", name="sync", value="standard", source="inherited")
    journal.write_text(TuningJournal(machine="far", put_back=(value,)).model_dump_json())
    host = FakeMachine({}, answers)
    if well:
        asyncio.run(put_back(host, journal))
    else:
        with pytest.raises(TuningError, match="its pool is not imported"):
            asyncio.run(put_back(host, journal))
    assert journal.exists() != well


JOURNALS = [
    ("no JSON", "{"),
    ("of another format", json.dumps({"format": 2, "machine": "far", "put_back": []})),
    (
        "with a path that somebody put there",
        json.dumps(
            {
                "format": 1,
                "machine": "far",
                "put_back": [{"kind": "queue", "device": "../../etc", "name": "scheduler", "value": "none"}],
            }
        ),
    ),
    (
        "with a name that may not be tuned",
        json.dumps(
            {"format": 1, "machine": "far", "put_back": [{"kind": "vm", "name": "panic", "value": "1"}]}
        ),
    ),
    (
        "with a value of several lines",
        json.dumps({"format": 1, "machine": "far", "put_back": [{"kind": "hugepage", "value": "a\nb"}]}),
    ),
    ("of another machine", json.dumps({"format": 1, "machine": "near", "put_back": []})),
]


@pytest.mark.parametrize("text", [row[1] for row in JOURNALS], ids=[row[0] for row in JOURNALS])
def test_a_journal_that_was_tampered_with_does_nothing(text: str, tmp_path: Path) -> None:
    journal = tmp_path / "tuning.json"
    journal.write_text(text)
    host = host_to_tune()
    with pytest.raises(TuningError):
        asyncio.run(put_back(host, journal))
    assert host.ran == []
    assert journal.exists()


@given(data=st.binary())
def test_no_bytes_in_a_journal_crash(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    journal = tmp_path_factory.getbasetemp() / "journal.json"
    journal.write_bytes(data)
    with pytest.raises(TuningError):
        read_journal(journal)


def test_a_journal_that_cannot_be_written_leaves_all_as_it_was(tmp_path: Path) -> None:
    host = host_to_tune()
    with pytest.raises(TuningError, match="nothing was tuned"):
        asyncio.run(apply(host, Tuning.model_validate(FULL), tmp_path / "absent" / "tuning.json"))
    assert host.changes == []


def test_nothing_is_done_where_nothing_is_wanted(tmp_path: Path) -> None:
    host = host_to_tune()
    asyncio.run(apply(host, Tuning(), tmp_path / "tuning.json"))
    assert host.changes == []
    assert list(tmp_path.iterdir()) == []


def test_values_are_told_apart_by_kind() -> None:
    journal = TuningJournal(
        machine="far",
        put_back=(ZfsValue(name="zfs_txg_timeout", value="5"), VmValue(name="swappiness", value="5")),
    )
    assert TuningJournal.model_validate_json(journal.model_dump_json()) == journal
