"""Signatures by ssh-keygen. Passwords are asked by it on the terminal, or held by an agent; never by us."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.common.errors import PlimsollError, SettingsError
from plimsoll.common.hostile import printable

NAMESPACE = "plimsoll"
_PATIENCE_S = 60


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
    """Check the signature beside `file`. Without a file of `allowed` signers anybody's will do."""
    _needed()
    signature = signature_of(file)
    if allowed is None:
        ran = _ran(check_command(signature), file)
        return SignatureCheck(ran.returncode == 0, _last_line(ran))
    who = _ran(principals_command(signature, allowed))
    if who.returncode or not who.stdout.strip():
        return SignatureCheck(False, "is of nobody among the allowed signers")
    ran = _ran(verify_command(signature, allowed, who.stdout.splitlines()[0]), file)
    return SignatureCheck(ran.returncode == 0, _last_line(ran))


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
