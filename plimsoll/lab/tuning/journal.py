"""The journal of a tuning: what everything was, down to the disk before anything is changed.

It lies on the machine that is tuned, in one folder for all experiments, so that the next one there finds it.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from plimsoll.common.validation import sentence_of
from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import Done, Machine
from plimsoll.lab.names import StrictModel
from plimsoll.lab.tuning.errors import TuningError
from plimsoll.lab.tuning.values import Value

FOLDER = "/var/lib/plimsoll/tuning"  # whatever `work` is: others must find it

_NAME = re.compile(r"plimsoll-[a-z0-9-]{1,60}")
# $1 is the file. It comes into being whole; who writes it has the machine to itself (lab/experiment/lock.py).
_WRITE = """if [ -e "$1" ]; then exit 73; fi
mkdir -p -- "${1%/*}" && cat >"$1.new" && { sync -- "$1.new" 2>/dev/null || sync; } || exit 1
mv -- "$1.new" "$1" || exit 1
sync -- "${1%/*}" 2>/dev/null || sync"""
_READ = '[ -e "$1" ] || [ -L "$1" ] || exit 74; exec cat -- "$1"'
_REMOVE = 'rm -f -- "$1" || exit; [ ! -d "${1%/*}" ] || sync -- "${1%/*}" 2>/dev/null || sync'
_LIST = '[ -e "$1" ] || exit 0; cd -- "$1" && for file in *.json; do printf "%s\\n" "$file"; done'
_THERE, _ABSENT = 73, 74


@dataclass(frozen=True)
class JournalPlace:
    """Where a tuning's journal lies on its machine: `label` names the file, `by` whose tuning it is."""

    label: str
    by: str = ""

    @property
    def path(self) -> str:
        """The file, by the same path on each machine."""
        return f"{FOLDER}/{self.label}.json"


class TuningJournal(StrictModel):
    """The values to put back, in this order, and who changed them. Every name is checked when it is read."""

    format: Literal[1] = 1
    by: str
    put_back: tuple[Value, ...]


async def write_journal(machine: Machine, place: JournalPlace, put_back: Sequence[Value]) -> None:
    """Write the journal, down to the disk. Raises TuningError, also where there is one already."""
    journal = TuningJournal(by=place.by, put_back=tuple(put_back))
    text = json.dumps(journal.model_dump(mode="json"), indent=1) + "\n"
    done = await _done(machine, _WRITE, place.path, text.encode())
    if done.status == _THERE:
        raise TuningError(
            f"{place.path}: an earlier tuning was not put back; put it back before you apply another"
        )
    if done.status:
        raise TuningError(f"{place.path}: cannot be written: {done.err.strip()}; nothing was tuned")


async def read_journal(machine: Machine, place: JournalPlace) -> TuningJournal | None:
    """Return the journal, None where there is none. Raises TuningError if it is no journal."""
    done = await _done(machine, _READ, place.path)
    if done.status == _ABSENT:
        return None
    if done.status:
        raise TuningError(f"{place.path}: cannot be read: {done.err.strip()}")
    return parse_journal(place.path, done.out)


def parse_journal(path: str, text: str) -> TuningJournal:
    """Return the journal that `text` is. Raises TuningError if it is none. Pure."""
    try:
        return TuningJournal.model_validate_json(text)
    except ValidationError as error:
        raise TuningError(
            f"{path}: is not a tuning journal ({sentence_of(error)}); nothing was put back: compare the "
            "host by hand, then remove the file"
        ) from None


async def remove_journal(machine: Machine, place: JournalPlace) -> None:
    """Remove it: everything in it was put back. Raises TuningError."""
    done = await _done(machine, _REMOVE, place.path)
    if done.status:
        raise TuningError(f"{place.path}: cannot be removed: {done.err.strip()}; remove it by hand")


async def journals_on(machine: Machine) -> list[JournalPlace]:
    """Return the journals that lie on `machine`, whoever wrote them. Raises TuningError."""
    done = await _done(machine, _LIST, FOLDER)
    if done.status:
        raise TuningError(f"{machine.name}: {FOLDER}: cannot be listed: {done.err.strip()}")
    names = [line.removesuffix(".json") for line in done.out.splitlines()]
    return [JournalPlace(name) for name in names if _NAME.fullmatch(name)]


async def _done(machine: Machine, script: str, path: str, stdin: bytes | None = None) -> Done:
    """Run `script` with `path`; raises TuningError where the machine cannot be asked."""
    try:
        return await machine.run(["sh", "-c", script, "sh", path], stdin=stdin, check=False)
    except MachineError as error:
        raise TuningError(f"{path}: {error}") from None
