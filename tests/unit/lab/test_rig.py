"""One backend at work: what a message on its leftovers says, and which of its commands are recorded."""

import asyncio
from typing import Any

import pytest

from plimsoll.lab.clones.clone import CloneKit
from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment import rig
from plimsoll.lab.experiment.labfile import Backend
from plimsoll.lab.experiment.machines import RecordedMachine
from plimsoll.lab.machine import Machine
from plimsoll.lab.steps.step import Command, Remains
from tests.support.scripted import FakeMachine


def test_who_calls_says_which_backend_it_is_that_cannot_be_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stuck:
        async def find(self, machine: Machine) -> list[Remains]:
            return [Remains("the boat", "harbour", ())]

    stuck: Any = Stuck()
    clone = {"driver": "static", "target": "http://127.0.0.1:9"}
    backend = Backend.model_validate({"name": "harbour", "clone": clone})
    monkeypatch.setattr(rig, "_PAUSES_S", ())
    one = rig.Rig(backend, FakeMachine(), None, CloneKit(stuck), None, None, lambda _name, _step: None)
    with pytest.raises(LabError, match=r"^still there after removal: the boat$"):
        asyncio.run(one.clear())


def test_a_machine_records_what_it_runs_and_starts_if_that_is_to_be_recorded() -> None:
    recorded = list[Command]()
    machine = RecordedMachine(FakeMachine(), recorded.append, lambda words: words[0] != "df")

    async def use() -> None:
        for words in (["df"], ["fio"]):
            await machine.run(words, check=False)
            await machine.start(words)

    asyncio.run(use())
    assert [command.words for command in recorded] == [("fio",), ("fio",)]
