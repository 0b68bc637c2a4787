"""Signatures of sign-offs: whose they are, whether they still hold, and that no password is ever ours."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from plimsoll.analysis.signoff.seal import (
    check_command,
    principals_command,
    sign_command,
    verify_command,
    write_manifest,
)
from tests.support.comparable import BACKENDS, sign_off, signed_off, stand_in_browser, write_both, write_gates
from tests.support.programs import need


@pytest.fixture(autouse=True)
def browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = stand_in_browser(tmp_path)
    monkeypatch.setattr("plimsoll.analysis.signoff.pdf.find_chromium", lambda: str(program))


def test_no_password_is_on_a_command_line() -> None:
    key, file, signed = Path("k"), Path("f"), Path("f.sig")
    assert sign_command(key, file) == ["ssh-keygen", "-Y", "sign", "-n", "plimsoll", "-f", "k", "f"]
    assert check_command(signed) == ["ssh-keygen", "-Y", "check-novalidate", "-n", "plimsoll", "-s", "f.sig"]
    assert principals_command(signed, key)[2:] == ["find-principals", "-s", "f.sig", "-f", "k"]
    named = ["-s", "f.sig", "-f", "k", "-I", "a@b"]
    assert verify_command(signed, key, "a@b") == ["ssh-keygen", "-Y", "verify", "-n", "plimsoll", *named]


def keygen(path: Path, password: str = "") -> Path:
    """Make a key; the password is one of a test."""
    command = [need("ssh-keygen"), "-q", "-t", "ed25519", "-N", password, "-C", "", "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return path


def line(key: Path, who: str = "bell@example.com", options: str = 'namespaces="plimsoll"') -> str:
    """Return a line of allowed signers."""
    return f"{who} {options} {key.with_suffix('.pub').read_text()}"


def allowed(folder: Path, *lines: str) -> Path:
    path = folder / "allowed_signers"
    path.write_text("".join(["# who may sign\n\n", *lines]))
    return path


@pytest.fixture
def signed(tmp_path: Path) -> tuple[Path, Path]:
    """Return a signed sign-off, and its key."""
    key = keygen(tmp_path / "key")
    return signed_off(tmp_path, "--key", key), key


def test_one_signature_over_the_manifest_is_checked(signed: tuple[Path, Path], tmp_path: Path) -> None:
    out, key = signed
    assert [path.name for path in out.glob("*.sig")] == ["MANIFEST.sig"]
    anybody = sign_off("verify", out)
    assert anybody.exit_code == 0
    assert "whose key that is was not asked: give --allowed-signers" in anybody.stdout
    assert "unsigned" not in anybody.stdout
    known = sign_off("verify", out, "--allowed-signers", allowed(tmp_path, line(key)))
    assert known.exit_code == 0, known.output
    assert known.stdout.count('good: MANIFEST: Good "plimsoll" signature for bell@example.com') == 1
    stranger = sign_off(
        "verify", out, "--allowed-signers", allowed(tmp_path, line(keygen(tmp_path / "other")))
    )
    assert stranger.exit_code == 1
    assert "WRONG: MANIFEST.sig: is not right: it is of nobody among the allowed signers" in stranger.stdout


PAST, FUTURE = 'valid-before="20200101"', 'valid-after="20990101"'
Lines = Callable[[Path, Path], list[str]]
SIGNERS: list[tuple[str, Lines, int, str]] = [
    (
        "of two principals with the key, the first may only sign commits",
        lambda key, _: [line(key, "git@example.com", 'namespaces="git"'), line(key)],
        0,
        "signature for bell@example.com",
    ),
    (
        "of two lines of one principal, the first has expired",
        lambda key, _: [line(key, options=PAST), line(key)],
        0,
        "signature for bell@example.com",
    ),
    (
        "of two principals, the first has another key",
        lambda key, other: [line(other, "draper@example.com"), line(key)],
        0,
        "signature for bell@example.com",
    ),
    (
        "of several principals of one line, the first is named",
        lambda key, _: [line(key, "bell@example.com,draper@example.com")],
        0,
        "signature for bell@example.com",
    ),
    ("a pattern of principals", lambda key, _: [line(key, "*@example.com")], 0, "for *@example.com"),
    (
        "a key that has expired is called expired",
        lambda key, other: [line(other), line(key, options=PAST)],
        1,
        "allowed_signers:4: key has expired: verify time",
    ),
    ("one that holds later", lambda key, _: [line(key, options=FUTURE)], 1, "key is not yet valid"),
    (
        "one for other uses",
        lambda key, _: [line(key, options='namespaces="git"')],
        1,
        'key is not permitted for use in signature namespace "plimsoll"',
    ),
    (
        "every refusal is told",
        lambda key, _: [line(key, options=PAST), line(key, options='namespaces="git"')],
        1,
        "allowed_signers:4: key is not permitted",
    ),
    (
        "lines that are none",
        lambda *_: ["garbage\n", "\0\n", "a b c d\n"],
        1,
        "is of nobody among the allowed",
    ),
]


@pytest.mark.parametrize(("what", "lines", "code", "says"), SIGNERS, ids=[row[0] for row in SIGNERS])
def test_every_allowed_signer_is_tried(
    signed: tuple[Path, Path], tmp_path: Path, what: str, lines: Lines, code: int, says: str
) -> None:
    out, key = signed
    who = allowed(tmp_path, *lines(key, keygen(tmp_path / "other")))
    result = sign_off("verify", out, "--allowed-signers", who)
    assert result.exit_code == code, f"{what}: {result.output}"
    assert says in result.stdout


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def _listed_anew(out: Path) -> None:
    """Change the page, and write a manifest that fits it; the signature stays."""
    text = (out / "signoff.html").read_text(encoding="utf-8")
    (out / "signoff.html").write_text(text.replace(">PASS<", ">FAIL<"), encoding="utf-8")
    signature = (out / "MANIFEST.sig").read_bytes()
    for name in ("MANIFEST", "MANIFEST.sig"):
        (out / name).unlink()
    write_manifest(out)
    (out / "MANIFEST.sig").write_bytes(signature)


def _from_another(out: Path, *names: str) -> None:
    """Put files of another sign-off, by the same key, in the place of this one's."""
    folder = out.parent / "another"
    folder.mkdir()
    another = signed_off(folder, "--key", out.parent / "key", ratio=1.5)
    for name in names:
        shutil.copy(another / name, out / name)


SIGNED_CHANGES: list[tuple[str, Callable[[Path], object], str]] = [
    ("a PDF", lambda out: _flip(out / "signoff.pdf"), "signoff.pdf: was changed"),
    ("another's PDF", lambda out: _from_another(out, "signoff.pdf"), "signoff.pdf: was changed"),
    (
        "another's PDF, manifest and signature",
        lambda out: _from_another(out, "signoff.pdf", "MANIFEST", "MANIFEST.sig"),
        "signoff.html: was changed",
    ),
    ("no PDF any more", lambda out: (out / "signoff.pdf").unlink(), "signoff.pdf: is missing"),
    ("a page and the manifest", _listed_anew, "MANIFEST.sig: is not right: it is not of this MANIFEST"),
    (
        "no signature any more",
        lambda out: (out / "MANIFEST.sig").unlink(),
        "MANIFEST.sig: is missing: signoff.json says that the document was signed",
    ),
    ("another's signature", lambda out: _from_another(out, "MANIFEST.sig"), "MANIFEST.sig: is not right"),
    ("an empty one", lambda out: (out / "MANIFEST.sig").write_text(""), "MANIFEST.sig: is not right"),
]


@pytest.mark.parametrize("asked", [True, False], ids=["with allowed signers", "without"])
@pytest.mark.parametrize(("what", "spoil", "says"), SIGNED_CHANGES, ids=[row[0] for row in SIGNED_CHANGES])
def test_a_change_of_what_is_signed_is_found(
    signed: tuple[Path, Path],
    tmp_path: Path,
    what: str,
    spoil: Callable[[Path], object],
    says: str,
    asked: bool,
) -> None:
    out, key = signed
    spoil(out)
    by = ("--allowed-signers", allowed(tmp_path, line(key))) if asked else ()
    result = sign_off("verify", out, *by)
    assert result.exit_code == 1, what
    assert says in result.stdout


def test_a_sign_off_without_signature_is_unsigned_and_not_one_of_allowed_signers(tmp_path: Path) -> None:
    out, who = signed_off(tmp_path), allowed(tmp_path, line(keygen(tmp_path / "key")))
    assert "note: unsigned: nobody signed MANIFEST" in sign_off("verify", out).stdout
    result = sign_off("verify", out, "--allowed-signers", who)
    assert result.exit_code == 1
    assert "WRONG: unsigned: nobody signed MANIFEST" in result.stdout


def test_a_sign_off_may_be_signed_later(tmp_path: Path) -> None:
    out, key = signed_off(tmp_path), keygen(tmp_path / "key")
    subprocess.run(sign_command(key, out / "MANIFEST"), check=True, capture_output=True)
    result = sign_off("verify", out, "--allowed-signers", allowed(tmp_path, line(key)))
    assert result.exit_code == 0, result.output


def test_a_key_that_cannot_sign_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    write_both(tmp_path / "e")
    keygen(tmp_path / "key")
    out = tmp_path / "signed"
    (tmp_path / "key").write_text("no key")
    result = sign_off(
        tmp_path / "e", *BACKENDS, "--gates", write_gates(tmp_path), "--out", out, "--key", tmp_path / "key"
    )
    assert result.exit_code == 2
    assert "cannot sign" in result.stderr
    assert not out.exists()
    assert not list(tmp_path.glob(".signed*"))


def test_a_key_in_an_agent_signs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = keygen(tmp_path / "key")
    agent_program, add_program = shutil.which("ssh-agent"), shutil.which("ssh-add")
    if agent_program is None or add_program is None:
        pytest.skip("no ssh-agent on the path")
    socket = tmp_path / "agent"
    with subprocess.Popen(
        [agent_program, "-D", "-a", str(socket)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as agent:
        try:
            assert agent.stdout
            agent.stdout.readline()  # it says where it listens once it does
            monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
            subprocess.run([add_program, "-q", str(key)], check=True, stderr=subprocess.DEVNULL)
            key.unlink()
            out = signed_off(tmp_path, "--key", key.with_suffix(".pub"))
        finally:
            agent.terminate()
    assert sign_off("verify", out, "--allowed-signers", allowed(tmp_path, line(key))).exit_code == 0
