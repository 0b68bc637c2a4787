"""Verifies that a sign-off and its evidence are unchanged."""

import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from analysis.signoff.make import DATA, GATES, PAGE, PDF
from analysis.signoff.signing import check, signature_of
from analysis.signoff.sums import NAME, Sum, parse_sums, sha256_of
from plimsoll.common.errors import SettingsError
from plimsoll.rundir.names import FACTS_FILE, READ

_LARGEST_BYTES = 1 << 26
_STATED = re.compile(rb'id="sums-sha256">([0-9a-f]{64})<')


@dataclass(frozen=True)
class Verification:
    """The problems, what was found good, and what nobody can say. Texts are hostile."""

    problems: list[str]
    good: list[str]
    notes: list[str]


def verify_signoff(
    folder: Path, allowed: Path | None = None, progress: Callable[[int, int], None] = lambda *_: None
) -> Verification:
    """Check sums and signatures of the sign-off in `folder`; `progress` is called with files.

    With a file of `allowed` signers every document has to be signed by one of them. Raises SettingsError
    where `folder` holds no sign-off.
    """
    if allowed is not None and not allowed.is_file():
        raise SettingsError(f"{allowed}: cannot be read: give a file of allowed signers (man ssh-keygen)")
    listed, page = _read(folder / NAME), _read(folder / PAGE)
    sums = parse_sums(listed, str(folder / NAME))
    problems = [*_stated(folder, page), *_own(sums)]
    for number, each in enumerate(sums, 1):
        problems += _differs(folder, each)
        progress(number, len(sums))
    problems += _added(folder, sums)
    good = [] if problems else [f"{len(sums):,} sums are right, and the document states that of their list"]
    notes: list[str] = []
    for name in (NAME, PAGE, PDF):
        if (folder / name).exists() or signature_of(folder / name).exists():
            _check_signature(folder / name, allowed, problems, good, notes)
    return Verification(problems, good, notes)


def _read(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise SettingsError(f"{path}: is no plain file")
        with path.open("rb") as file:
            data = file.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise SettingsError(
            f"{path}: cannot be read: {error.strerror}: give the folder that plimsoll signoff wrote"
        ) from None
    if len(data) > _LARGEST_BYTES:
        raise SettingsError(f"{path}: is larger than {_LARGEST_BYTES >> 20} MiB: no sign-off is")
    return data


def _stated(folder: Path, page: bytes) -> Iterator[str]:
    if [digits.decode() for digits in _STATED.findall(page)] != [sha256_of(folder / NAME)]:
        yield f"{PAGE} does not state the sum of {NAME}: one of the two was changed"


def _own(sums: list[Sum]) -> Iterator[str]:
    names = {each.name for each in sums}
    yield from (
        f"{name} is not in {NAME}: the list was changed" for name in (GATES, DATA) if name not in names
    )


def _differs(folder: Path, each: Sum) -> Iterator[str]:
    path = folder / each.name
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            yield f"{each.name}: is no plain file any more"
        elif sha256_of(path) != each.sha256:
            yield f"{each.name}: was changed"
    except FileNotFoundError:
        yield f"{each.name}: is missing"
    except OSError as error:
        yield f"{each.name}: cannot be read: {error.strerror}"


def _added(folder: Path, sums: list[Sum]) -> Iterator[str]:
    """Yield files that a run is read from and that have no sum: they came later, and change what it says."""
    names = {each.name for each in sums}
    for run in dict.fromkeys(os.path.dirname(name) for name in names if name.endswith(f"/{FACTS_FILE}")):  # noqa: PTH120
        for part in READ:
            if f"{run}/{part}" not in names and os.path.lexists(folder / run / part):
                yield f"{run}/{part}: was added later"


def _check_signature(
    file: Path, allowed: Path | None, problems: list[str], good: list[str], notes: list[str]
) -> None:
    if not file.exists():
        problems.append(f"{file.name}: is missing, but its signature is there")
    elif not signature_of(file).exists():
        (notes if allowed is None else problems).append(f"{file.name}: has no signature")
    elif (checked := check(file, allowed)).good:
        good.append(f"{file.name}: {checked.says}")
        if allowed is None:
            notes.append(f"{file.name}: whose key that is was not asked: give --allowed-signers")
    else:
        problems.append(f"{file.name}: the signature is not right: {checked.says}")
