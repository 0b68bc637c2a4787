"""Verifies that a sign-off and its evidence are unchanged."""

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from plimsoll.analysis.signoff.manifest import (
    ALWAYS,
    DATA,
    EVIDENCE,
    JUDGED_BY,
    MANIFEST,
    PAGE,
    PDF,
    RAW_BYTES,
    SIGNATURE,
    problems_of,
)
from plimsoll.analysis.signoff.pdf import UnreadablePdfError, has_on_each_page
from plimsoll.analysis.signoff.rawdata import files_in
from plimsoll.analysis.signoff.samesite import RESULT
from plimsoll.analysis.signoff.signing import check
from plimsoll.analysis.signoff.sums import Sum, parse_sums, sha256_of
from plimsoll.common.errors import RunDirectoryError, SettingsError
from plimsoll.common.units import counted
from plimsoll.rundir.names import FACTS_FILE

_LARGEST_BYTES = 1 << 26
_STATED = re.compile(rb'id="sums-sha256">([0-9a-f]{64})<')


@dataclass(frozen=True)
class Verification:
    """The problems, what was found good, and what nobody can say. Texts are hostile."""

    problems: list[str] = field(default_factory=list)
    good: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def verify_signoff(
    folder: Path, allowed: Path | None = None, progress: Callable[[int, int], None] = lambda *_: None
) -> Verification:
    """Check sums and signature of the sign-off in `folder`; `progress` is called with files.

    With a file of `allowed` signers one of them has to have signed it. Raises SettingsError where `folder`
    holds no sign-off.
    """
    if allowed is not None and not allowed.is_file():
        raise SettingsError(f"{allowed}: cannot be read: give a file of allowed signers (man ssh-keygen)")
    if not any((folder / name).exists() for name in (MANIFEST, *ALWAYS)):
        raise SettingsError(f"{folder}: holds no sign-off: give the folder that plimsoll signoff wrote")
    found = Verification()
    manifest, evidence = (_listed(folder / name, found.problems) for name in (MANIFEST, EVIDENCE))
    if manifest:
        found.problems.extend(problems_of(manifest, [path.name for path in folder.iterdir()]))
    found.problems.extend(_incomplete(folder, evidence))
    every = dict.fromkeys([*manifest, *evidence])
    raw_bytes = _raw_bytes(folder, evidence)
    for number, each in enumerate(every, 1):
        found.problems.extend(_differs(folder, each, raw_bytes))
        progress(number, len(every))
    found.problems.extend(_added(folder, evidence))
    if evidence and not any(problem.startswith(f"{PDF}: ") for problem in found.problems):
        found.problems.extend(_without_sum(folder))
    if not found.problems:
        document, raw = len(manifest), len(evidence) - len(JUDGED_BY)
        found.good.append(
            f"{counted(document, 'file')} of the document and {raw:,} of raw data are as {MANIFEST} and "
            f"{EVIDENCE} have them"
        )
        found.good.append(f"the sum on every page is {sha256_of(folder / EVIDENCE)}")
        if not (folder / PDF).exists():
            found.notes.append(f"{PDF}: none was made")
    _check_signature(folder, allowed, found)
    return replace(found, problems=list(dict.fromkeys(found.problems)))


def _read(path: Path) -> bytes:
    """Return what a file of ours holds. Raises SettingsError."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise SettingsError(f"{path.name}: is no plain file")
        with path.open("rb") as file:
            data = file.read(_LARGEST_BYTES + 1)
    except FileNotFoundError:
        raise SettingsError(f"{path.name}: is missing") from None
    except OSError as error:
        raise SettingsError(f"{path.name}: cannot be read: {error.strerror}") from None
    if len(data) > _LARGEST_BYTES:
        raise _too_large(path)
    return data


def _too_large(path: Path) -> SettingsError:
    return SettingsError(
        f"{path.name}: is larger than {_LARGEST_BYTES >> 20} MiB: no sign-off has such a file"
    )


def _listed(path: Path, problems: list[str]) -> list[Sum]:
    try:
        return parse_sums(_read(path), path.name)
    except SettingsError as error:
        problems.append(str(error))
        return []


def _incomplete(folder: Path, evidence: Iterable[Sum]) -> Iterator[str]:
    """Yield where the list of the evidence is not whole, or not the one that the page states the sum of."""
    names = {each.name for each in evidence}
    if names:
        yield from (f"{name}: is not in {EVIDENCE}" for name in JUDGED_BY if name not in names)
        try:
            stated = [digits.decode() for digits in _STATED.findall(_read(folder / PAGE))]
        except SettingsError:
            return  # the manifest has it, and tells
        if stated != [sha256_of(folder / EVIDENCE)]:
            yield f"{PAGE}: does not state the sum of {EVIDENCE}: one was changed, or is another sign-off's"


def _without_sum(folder: Path) -> Iterator[str]:
    """Yield where the PDF, if there is one, does not bear the sum of the list of the evidence."""
    if not (folder / PDF).exists():
        return
    try:
        if not has_on_each_page(_read(folder / PDF), sha256_of(folder / EVIDENCE)):
            yield f"{PDF}: not every page bears the sum of {EVIDENCE}: one of the two was changed"
    except SettingsError as error:
        yield str(error)
    except UnreadablePdfError as error:
        yield f"{PDF}: {error}"


def _raw_bytes(folder: Path, evidence: Iterable[Sum]) -> dict[str, int]:
    """Return the size of each file of raw data, by name; none where signoff.json was changed, or has none.

    A file of another size was changed, which is known before it is read.
    """
    try:
        data = _read(folder / DATA)
        if Sum(DATA, hashlib.sha256(data).hexdigest()) in evidence:
            return {str(name): int(size) for name, size in json.loads(data)[RAW_BYTES].items()}
    except (SettingsError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        pass  # whatever is wrong with it, its sum or the page tells
    return {}


def _differs(folder: Path, each: Sum, raw_bytes: Mapping[str, int]) -> Iterator[str]:
    path = folder / each.name
    try:
        facts = path.lstat()
        if not stat.S_ISREG(facts.st_mode):
            yield f"{each.name}: is no plain file any more"
        elif "/" not in each.name and facts.st_size > _LARGEST_BYTES:
            yield str(_too_large(path))
        elif facts.st_size != raw_bytes.get(each.name, facts.st_size) or sha256_of(path) != each.sha256:
            yield f"{each.name}: was changed"
    except FileNotFoundError:
        yield f"{each.name}: is missing"
    except OSError as error:
        yield f"{each.name}: cannot be read: {error.strerror}"


def _added(folder: Path, evidence: Iterable[Sum]) -> Iterator[str]:
    """Yield files of the run directories, and of a comparison of pages, that have no sum: they came later."""
    names = {each.name for each in evidence}
    whole = [name for name in names if name.endswith((f"/{FACTS_FILE}", f"/{RESULT}"))]
    for run in dict.fromkeys(os.path.dirname(name) for name in whole):  # noqa: PTH120
        directory = folder / run
        if directory.is_dir():
            try:
                there = [f"{run}/{path.relative_to(directory)}" for path in files_in(directory)]
            except RunDirectoryError as error:
                yield str(error)
                continue
            yield from (f"{name}: was added" for name in sorted({*there} - names))


def _check_signature(folder: Path, allowed: Path | None, found: Verification) -> None:
    if not (folder / SIGNATURE).exists():
        if _was_signed(folder):
            found.problems.append(f"{SIGNATURE}: is missing: {DATA} says that the document was signed")
        elif allowed is not None:
            found.problems.append(f"unsigned: nobody signed {MANIFEST}")
        else:
            found.notes.append(
                f"unsigned: nobody signed {MANIFEST}, so whoever can write here can have changed the "
                "document and its sums together"
            )
    elif (folder / MANIFEST).exists():
        for name in (SIGNATURE, MANIFEST):
            try:
                _read(folder / name)
            except SettingsError as error:
                found.problems.append(str(error))
                return
        checked = check(folder / MANIFEST, allowed)
        if not checked.good:
            found.problems.append(f"{SIGNATURE}: is not right: {checked.says}")
            return
        found.good.append(f"{MANIFEST}: {checked.says}")
        if allowed is None:
            found.notes.append(f"{SIGNATURE}: whose key that is was not asked: give --allowed-signers")


def _was_signed(folder: Path) -> bool:
    try:
        data = json.loads(_read(folder / DATA))
    except (SettingsError, ValueError, RecursionError):
        return False  # it is not as it was, which its sum tells
    return isinstance(data, dict) and data.get("signed") is True
