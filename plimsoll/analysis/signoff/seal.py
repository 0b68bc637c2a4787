"""What binds a sign-off to its evidence: sums, manifest and signature, and the check of all of them.

SHA256SUMS has the sum of every file of raw data, of the gates and of signoff.json. Its own sum is printed on
every page, so that a sheet of paper names all that it stands on. The pages cannot be in it, since they state
its sum. MANIFEST has the sums of all files of the folder, of the pages and of SHA256SUMS too, and is signed.

Signatures are by ssh-keygen, which asks for a password on the terminal itself or leaves it to an agent.
"""

import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from plimsoll.analysis.signoff.pdf import UnreadablePdfError, has_on_each_page
from plimsoll.analysis.signoff.same_pages import RESULT
from plimsoll.common.errors import PlimsollError, RunDirectoryError, SettingsError
from plimsoll.common.hostile import printable
from plimsoll.common.units import counted
from plimsoll.rundir.names import DERIVED, FACTS_FILE

_BLOCK_BYTES = 1 << 20
_LINE = re.compile(rb"(\\?)([0-9a-f]{64}) [ *](.+)", re.DOTALL)
_ESCAPES = {b"\\\\": b"\\", b"\\n": b"\n", b"\\r": b"\r"}
MANIFEST = "MANIFEST"
SIGNATURE = f"{MANIFEST}.sig"
EVIDENCE = "SHA256SUMS"
PAGE = "signoff.html"
PDF = "signoff.pdf"
DATA = "signoff.json"
GATES = "gates.yml"
RAW_BYTES = "raw_bytes"  # of DATA: the size of each file of raw data, by its name in EVIDENCE
# What the evidence is judged by and comes to: it has sums among the evidence too, and so a part in its sum.
JUDGED_BY = (GATES, DATA)
# A sign-off has all of these; the PDF is there where a browser was.
ALWAYS = (EVIDENCE, GATES, DATA, PAGE)
NAMESPACE = "plimsoll"
_PATIENCE_S = 60
_LARGEST_SIGNERS_BYTES = 1 << 22  # of a file of allowed signers
_UNDATED = "a signature bears no date, so it takes one by a key that is valid today"
_LARGEST_BYTES = 1 << 26  # of a file of the sign-off itself
_STATED = re.compile(rb'id="sums-sha256">([0-9a-f]{64})<')


@dataclass(frozen=True)
class FileSum:
    """One file's sum; the name (hostile) is relative to the folder of the list."""

    name: str
    sha256: str


@dataclass(frozen=True)
class RawFile:
    """One file, and by what a change while it is read is known."""

    path: Path
    bytes: int
    changed_ns: int
    inode: int


def write_manifest(folder: Path) -> None:
    """Write the manifest of all that stands in `folder`. Raises OSError."""
    names = sorted(path.name for path in folder.iterdir())
    sums = [FileSum(name, sha256_of(folder / name)) for name in names]
    (folder / MANIFEST).write_bytes(sums_text(sums))


def raw_files(directories: Iterable[Path]) -> list[RawFile]:
    """Return all files of run directories, by name; hidden files and reports are left out.

    Raises RunDirectoryError, also where one is not a plain file, such as a link: it leads to what has no sum.
    """
    found: dict[Path, RawFile] = {}
    for directory in directories:
        for path in _files_in(directory.resolve()):
            found[path] = _read_status(path)
    return [found[path] for path in sorted(found)]


def sum_files(files: Sequence[RawFile], beside: Path, progress: Callable[[int, int], None]) -> list[FileSum]:
    """Return the sum of every file, its name relative to the folder `beside`.

    `progress` is called with the bytes that are read and all that there are.

    Raises RunDirectoryError where one cannot be read, or is not what it was when `files` was made.
    """
    found = []
    total, done = total_bytes(files), 0

    def advance(read: int) -> None:
        nonlocal done
        done += read
        progress(done, total)

    for file in files:
        try:
            digits = sha256_of(file.path, advance)
        except OSError as error:
            raise RunDirectoryError(f"{file.path}: cannot be read: {error.strerror}") from None
        if _read_status(file.path) != file:
            raise RunDirectoryError(
                f"{file.path}: changed while it was read: wait until the run has ended, and sign off then"
            )
        found.append(FileSum(name_beside(file, beside), digits))
    return found


def _files_in(directory: Path) -> list[Path]:
    """Return all raw data of a run directory, links among them. Raises RunDirectoryError."""
    found = []
    try:
        for folder, folders, names in os.walk(directory, onerror=_raise_error):
            folders[:] = [name for name in folders if not name.startswith(".")]
            links = [name for name in folders if (Path(folder) / name).is_symlink()]
            shown = [name for name in [*names, *links] if not name.startswith(".") and name not in DERIVED]
            found += [Path(folder) / name for name in shown]
    except OSError as error:
        raise RunDirectoryError(f"{directory}: cannot be read: {error.strerror}") from None
    return found


def total_bytes(files: Iterable[RawFile]) -> int:
    """Return how many bytes there are to be read."""
    return sum(file.bytes for file in files)


def name_beside(file: RawFile, beside: Path) -> str:
    """Return the name of a file (hostile) relative to the folder `beside`, which need not be there."""
    return os.path.relpath(file.path, beside)


def _read_status(path: Path) -> RawFile:
    try:
        facts = path.lstat()
    except OSError as error:
        raise RunDirectoryError(f"{path}: cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(facts.st_mode):
        raise RunDirectoryError(
            f"{path}: is not a plain file, so it has no sum: take it out of the run directory"
        )
    return RawFile(path, facts.st_size, facts.st_mtime_ns, facts.st_ino)


def _raise_error(error: OSError) -> None:
    raise error


def sha256_of(path: Path, advance: Callable[[int], None] = lambda _: None) -> str:
    """Return the sum of a file, as hexadecimal digits. `advance` is called with bytes. Raises OSError."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            found.update(block)
            advance(len(block))
    return found.hexdigest()


def sums_text(sums: Iterable[FileSum]) -> bytes:
    """Return the list. A name with a line break or backslash is escaped as sha256sum does it. Pure."""
    lines = []
    for each in sums:
        name = os.fsencode(each.name)
        escaped = name.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
        lines.append((b"\\" if escaped != name else b"") + each.sha256.encode() + b"  " + escaped + b"\n")
    return b"".join(lines)


def parse_sums(data: bytes, name: str) -> list[FileSum]:
    """Return what the list holds; `name` is the file's, for messages. Raises SettingsError. Pure."""
    found = []
    for number, line in enumerate(data.split(b"\n")[:-1] if data.endswith(b"\n") else [b""], 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise SettingsError(
                f"{name}:{number}: is not a line of sha256sum: the file was cut off or changed"
            )
        escaped, digits, path = match.groups()
        if escaped:
            path = re.sub(rb"\\[\\nr]", lambda pair: _ESCAPES[pair[0]], path)
        if b"\0" in path:
            raise SettingsError(f"{name}:{number}: names no file: the file was changed")
        found.append(FileSum(os.fsdecode(path), digits.decode()))
    return found


class SigningError(PlimsollError):
    """A file cannot be signed."""


@dataclass(frozen=True)
class SignatureCheck:
    """The result of checking a signature; `says` is ssh-keygen's (hostile): whose it is, or what is wrong."""

    good: bool
    says: str


def sign(key: Path, file: Path) -> None:
    """Sign `file`: its signature stands beside it. ssh-keygen asks for a password on the terminal itself.

    `key` is a private key, or a public one whose private key an agent holds. Raises SigningError.
    """
    _require_ssh_keygen()
    ran = _run_command(sign_command(key, file), patience_s=None)
    if ran.returncode or not _signature_of(file).is_file():
        raise SigningError(
            f"{key}: cannot sign ({_last_line(ran)}): give a key of ssh-keygen with --key, and where it has "
            "a password, add it to an agent first"
        )


def _find_list_problems(manifest: Sequence[FileSum], there: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with the list itself, `there` being the names in its folder (hostile). Pure."""
    names = [each.name for each in manifest]
    yield from (f"{name}: is not in {MANIFEST}" for name in ALWAYS if name not in names)
    yield from (f"{MANIFEST}: {name} is not a file of this folder" for name in names if "/" in name)
    yield from (
        f"{MANIFEST}: {name} is in it twice" for name in dict.fromkeys(names) if names.count(name) > 1
    )
    yield from (f"{name}: was added" for name in sorted({*there} - {*names, MANIFEST, SIGNATURE}))


def _signature_of(file: Path) -> Path:
    """Return where the signature of a file stands."""
    return file.with_name(f"{file.name}.sig")


def sign_command(key: Path, file: Path) -> list[str]:
    """Return what signs. Pure."""
    return ["ssh-keygen", "-Y", "sign", "-n", NAMESPACE, "-f", str(key), str(file)]


def check_command(signature: Path) -> list[str]:
    """Return what says whether a signature fits standard input, whoever made it. Pure."""
    return ["ssh-keygen", "-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(signature)]


def principals_command(signature: Path, allowed: Path) -> list[str]:
    """Return what says who of the allowed signers made a signature. Pure."""
    return ["ssh-keygen", "-Y", "find-principals", "-s", str(signature), "-f", str(allowed)]


def verify_command(signature: Path, allowed: Path, principal: str) -> list[str]:
    """Return what says whether a signature fits standard input and is this signer's. Pure."""
    named = ["-f", str(allowed), "-I", principal]
    return ["ssh-keygen", "-Y", "verify", "-n", NAMESPACE, "-s", str(signature), *named]


def check_signature(file: Path, allowed: Path | None) -> SignatureCheck:
    """Check the signature beside `file`. Without a file of `allowed` signers anybody's will do.

    Of the allowed signers every one is tried: one key may stand in several lines, of which some have expired
    or are for other uses.
    """
    _require_ssh_keygen()
    ran = _run_command(check_command(_signature_of(file)), file)
    if ran.returncode:
        return SignatureCheck(False, f"it is not of this {file.name}, or not a signature ({_last_line(ran)})")
    if allowed is None:
        return SignatureCheck(True, _last_line(ran))
    refusals = []
    for number, line in _read_signers(allowed):
        for found in _check_signer(file, line):
            if found.good:
                return found
            refusals.append(f"{allowed.name}:{number}: {found.says}")
    return SignatureCheck(False, "; ".join(refusals) or "it is of nobody among the allowed signers")


def _read_signers(allowed: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with allowed.open("rb") as file:
            data = file.read(_LARGEST_SIGNERS_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"{allowed}: cannot be read: {error.strerror}") from None
    if len(data) > _LARGEST_SIGNERS_BYTES:
        raise SettingsError(
            f"{allowed}: is larger than {_LARGEST_SIGNERS_BYTES >> 20} MiB: give fewer allowed signers"
        )
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith(b"#"):
            yield number, line


def _check_signer(file: Path, line: bytes) -> Iterator[SignatureCheck]:
    """Yield what one line of allowed signers says of the signature: nothing where it has another key.

    ssh-keygen looks no further than the first line with the key, so each line is asked by itself.
    """
    with tempfile.TemporaryDirectory() as folder:
        alone = Path(folder) / "line"
        alone.write_bytes(line + b"\n")
        who = _run_command(principals_command(_signature_of(file), alone))
        if who.returncode and (why := _find_refusal(who)):
            yield SignatureCheck(False, why)
        for principal in who.stdout.splitlines():
            ran = _run_command(verify_command(_signature_of(file), alone, principal), file)
            yield SignatureCheck(ran.returncode == 0, _find_refusal(ran) or _last_line(ran))


def _find_refusal(ran: "subprocess.CompletedProcess[str]") -> str | None:
    """Return why a line with the right key does not count, such as `key has expired: verify time … > …`."""
    said = re.search(r"^.*line:1: (key .+)$", ran.stderr, re.MULTILINE)
    if not ran.returncode or said is None:
        return None
    says = printable(said.group(1).strip())
    return f"{says} ({_UNDATED})" if "expired" in says else says


def _require_ssh_keygen() -> None:
    if shutil.which("ssh-keygen") is None:
        raise SettingsError("ssh-keygen is not installed, and signatures take it (Debian: openssh-client)")


def _run_command(
    command: Sequence[str], given: Path | None = None, patience_s: float | None = _PATIENCE_S
) -> "subprocess.CompletedProcess[str]":
    try:
        with (given or Path(os.devnull)).open("rb") as file:
            return subprocess.run(  # noqa: S603 a list of our own
                command,
                stdin=file,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=patience_s,
                check=False,
            )
    except subprocess.TimeoutExpired:
        raise SigningError(f"{command[0]} has not ended in {_PATIENCE_S} s") from None
    except (OSError, ValueError) as error:
        raise SigningError(f"{command[0]} cannot be run: {error}") from None


def _last_line(ran: "subprocess.CompletedProcess[str]") -> str:
    lines = (ran.stderr + ran.stdout).strip().splitlines()
    return printable(lines[-1].strip().rstrip(".")) if lines else f"exit code {ran.returncode}"


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
    manifest, evidence = (_read_sums(folder / name, found.problems) for name in (MANIFEST, EVIDENCE))
    if manifest:
        found.problems.extend(_find_list_problems(manifest, [path.name for path in folder.iterdir()]))
    found.problems.extend(_find_gaps(folder, evidence))
    every = dict.fromkeys([*manifest, *evidence])
    raw_bytes = _read_raw_bytes(folder, evidence)
    for number, each in enumerate(every, 1):
        found.problems.extend(_check_file(folder, each, raw_bytes))
        progress(number, len(every))
    found.problems.extend(_find_added(folder, evidence))
    if evidence and not any(problem.startswith(f"{PDF}: ") for problem in found.problems):
        found.problems.extend(_check_pdf(folder))
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


def _read_own(path: Path) -> bytes:
    """Return what a file of ours holds. Raises SettingsError."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise SettingsError(f"{path.name}: is not a plain file")
        with path.open("rb") as file:
            data = file.read(_LARGEST_BYTES + 1)
    except FileNotFoundError:
        raise SettingsError(f"{path.name}: is missing") from None
    except OSError as error:
        raise SettingsError(f"{path.name}: cannot be read: {error.strerror}") from None
    if len(data) > _LARGEST_BYTES:
        raise _size_error(path)
    return data


def _size_error(path: Path) -> SettingsError:
    return SettingsError(
        f"{path.name}: is larger than {_LARGEST_BYTES >> 20} MiB: no sign-off has such a file"
    )


def _read_sums(path: Path, problems: list[str]) -> list[FileSum]:
    try:
        return parse_sums(_read_own(path), path.name)
    except SettingsError as error:
        problems.append(str(error))
        return []


def _find_gaps(folder: Path, evidence: Iterable[FileSum]) -> Iterator[str]:
    """Yield where the list of the evidence is not whole, or not the one that the page states the sum of."""
    names = {each.name for each in evidence}
    if names:
        yield from (f"{name}: is not in {EVIDENCE}" for name in JUDGED_BY if name not in names)
        try:
            stated = [digits.decode() for digits in _STATED.findall(_read_own(folder / PAGE))]
        except SettingsError:
            return  # the manifest has it, and tells
        if stated != [sha256_of(folder / EVIDENCE)]:
            yield f"{PAGE}: does not state the sum of {EVIDENCE}: one was changed, or is another sign-off's"


def _check_pdf(folder: Path) -> Iterator[str]:
    """Yield where the PDF, if there is one, does not bear the sum of the list of the evidence."""
    if not (folder / PDF).exists():
        return
    try:
        if not has_on_each_page(_read_own(folder / PDF), sha256_of(folder / EVIDENCE)):
            yield f"{PDF}: not every page bears the sum of {EVIDENCE}: one of the two was changed"
    except SettingsError as error:
        yield str(error)
    except UnreadablePdfError as error:
        yield f"{PDF}: {error}"


def _read_raw_bytes(folder: Path, evidence: Iterable[FileSum]) -> dict[str, int]:
    """Return the size of each file of raw data, by name; none where signoff.json was changed, or has none.

    A file of another size was changed, which is known before it is read.
    """
    try:
        data = _read_own(folder / DATA)
        if FileSum(DATA, hashlib.sha256(data).hexdigest()) in evidence:
            return {str(name): int(size) for name, size in json.loads(data)[RAW_BYTES].items()}
    except (SettingsError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        pass  # whatever is wrong with it, its sum or the page tells
    return {}


def _check_file(folder: Path, each: FileSum, raw_bytes: Mapping[str, int]) -> Iterator[str]:
    path = folder / each.name
    try:
        facts = path.lstat()
        if not stat.S_ISREG(facts.st_mode):
            yield f"{each.name}: is no longer a plain file"
        elif "/" not in each.name and facts.st_size > _LARGEST_BYTES:
            yield str(_size_error(path))
        elif facts.st_size != raw_bytes.get(each.name, facts.st_size) or sha256_of(path) != each.sha256:
            yield f"{each.name}: was changed"
    except FileNotFoundError:
        yield f"{each.name}: is missing"
    except OSError as error:
        yield f"{each.name}: cannot be read: {error.strerror}"


def _find_added(folder: Path, evidence: Iterable[FileSum]) -> Iterator[str]:
    """Yield files of the run directories, and of a comparison of pages, that have no sum: they came later."""
    names = {each.name for each in evidence}
    whole = [name for name in names if name.endswith((f"/{FACTS_FILE}", f"/{RESULT}"))]
    for run in dict.fromkeys(os.path.dirname(name) for name in whole):  # noqa: PTH120
        directory = folder / run
        if directory.is_dir():
            try:
                there = [f"{run}/{path.relative_to(directory)}" for path in _files_in(directory)]
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
                _read_own(folder / name)
            except SettingsError as error:
                found.problems.append(str(error))
                return
        checked = check_signature(folder / MANIFEST, allowed)
        if not checked.good:
            found.problems.append(f"{SIGNATURE}: is not right: {checked.says}")
            return
        found.good.append(f"{MANIFEST}: {checked.says}")
        if allowed is None:
            found.notes.append(f"{SIGNATURE}: whose key that is was not asked: give --allowed-signers")


def _was_signed(folder: Path) -> bool:
    try:
        data = json.loads(_read_own(folder / DATA))
    except (SettingsError, ValueError, RecursionError):
        return False  # it is not as it was, which its sum tells
    return isinstance(data, dict) and data.get("signed") is True
