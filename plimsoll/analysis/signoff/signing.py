"""Signatures by ssh-keygen. Passwords are asked by it on the terminal, or held by an agent; never by us."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.common.errors import PlimsollError, SettingsError
from plimsoll.common.hostile import printable

NAMESPACE = "plimsoll"
_PATIENCE_S = 60
_LARGEST_BYTES = 1 << 22
_UNDATED = "a signature bears no date, so it takes one by a key that is valid today"


class SigningError(PlimsollError):
    """A file cannot be signed."""


@dataclass(frozen=True)
class SignatureCheck:
    """The result of checking a signature; `says` is ssh-keygen's (hostile): whose it is, or what is wrong."""

    good: bool
    says: str


def signature_of(file: Path) -> Path:
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


def sign(key: Path, file: Path) -> None:
    """Sign `file`: its signature stands beside it. ssh-keygen asks for a password on the terminal itself.

    `key` is a private key, or a public one whose private key an agent holds. Raises SigningError.
    """
    _needed()
    ran = _ran(sign_command(key, file), patience_s=None)
    if ran.returncode or not signature_of(file).is_file():
        raise SigningError(
            f"{key}: cannot sign ({_last_line(ran)}): give a key of ssh-keygen with --key, and where it has "
            "a password, add it to an agent first"
        )


def check(file: Path, allowed: Path | None) -> SignatureCheck:
    """Check the signature beside `file`. Without a file of `allowed` signers anybody's will do.

    Of the allowed signers every one is tried: one key may stand in several lines, of which some have expired
    or are for other uses.
    """
    _needed()
    ran = _ran(check_command(signature_of(file)), file)
    if ran.returncode:
        return SignatureCheck(False, f"it is not of this {file.name}, or is none ({_last_line(ran)})")
    if allowed is None:
        return SignatureCheck(True, _last_line(ran))
    refusals = []
    for number, line in _lines(allowed):
        for found in _of_line(file, line):
            if found.good:
                return found
            refusals.append(f"{allowed.name}:{number}: {found.says}")
    return SignatureCheck(False, "; ".join(refusals) or "it is of nobody among the allowed signers")


def _lines(allowed: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with allowed.open("rb") as file:
            data = file.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"{allowed}: cannot be read: {error.strerror}") from None
    if len(data) > _LARGEST_BYTES:
        raise SettingsError(
            f"{allowed}: is larger than {_LARGEST_BYTES >> 20} MiB: give fewer allowed signers"
        )
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith(b"#"):
            yield number, line


def _of_line(file: Path, line: bytes) -> Iterator[SignatureCheck]:
    """Yield what one line of allowed signers says of the signature: nothing where it has another key.

    ssh-keygen looks no further than the first line with the key, so each line is asked by itself.
    """
    with tempfile.TemporaryDirectory() as folder:
        alone = Path(folder) / "line"
        alone.write_bytes(line + b"\n")
        who = _ran(principals_command(signature_of(file), alone))
        if who.returncode and (why := _refusal(who)):
            yield SignatureCheck(False, why)
        for principal in who.stdout.splitlines():
            ran = _ran(verify_command(signature_of(file), alone, principal), file)
            yield SignatureCheck(ran.returncode == 0, _refusal(ran) or _last_line(ran))


def _refusal(ran: "subprocess.CompletedProcess[str]") -> str | None:
    """Return why a line with the right key does not count, such as `key has expired: verify time … > …`."""
    said = re.search(r"^.*line:1: (key .+)$", ran.stderr, re.MULTILINE)
    if not ran.returncode or said is None:
        return None
    says = printable(said.group(1).strip())
    return f"{says} ({_UNDATED})" if "expired" in says else says


def _needed() -> None:
    if shutil.which("ssh-keygen") is None:
        raise SettingsError("ssh-keygen is not installed, and signatures take it (Debian: openssh-client)")


def _ran(
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
