"""`plimsoll signoff verify`: whatever was changed since is found, and who signed is known."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.signoff.signing import (
    check_command,
    principals_command,
    sign_command,
    verify_command,
)
from tests.support.comparable import runs_of, write_both
from tests.support.signing_off import BACKENDS, gates, run, signed_off

MUST_RUN = os.environ.get("CI") == "true" and os.environ.get("PLIMSOLL_LAB") == "1"


@pytest.fixture(autouse=True)
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analysis.signoff.pdf.chromium", lambda: None)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("analysis.signoff.pdf.chromium", lambda: None)
        return signed_off(tmp_path_factory.mktemp("made")).parent


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """Return a copy of the experiment and its sign-off; relative names go with it."""
    shutil.copytree(made, tmp_path / "there")
    return tmp_path / "there"


def a_run(folder: Path) -> Path:
    return runs_of(folder / "experiment")[0]


def flip(path: Path) -> None:
    """Change one bit of the last byte; size and times stay."""
    data, facts = bytearray(path.read_bytes()), path.stat()
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def without_line(path: Path, name: str) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.endswith(f"{name}\n")))


def test_what_was_not_touched_is_good(folder: Path) -> None:
    result = run("verify", folder / "signed")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("good: ")
    assert "sums are right" in result.stdout
    assert "note: signoff.html: has no signature" in result.stdout


CHANGES: list[tuple[str, Callable[[Path], object], str]] = [
    ("one bit of a record", lambda f: flip(a_run(f) / "requests.npy"), "requests.npy: was changed"),
    ("a fact of a run", lambda f: replace(a_run(f) / "run.json", "4", "5"), "run.json: was changed"),
    ("a file that is gone", lambda f: (a_run(f) / "summary.json").unlink(), "summary.json: is missing"),
    ("a run that is gone", lambda f: shutil.rmtree(a_run(f)), "run.json: is missing"),
    (
        "a file that came later",
        lambda f: (a_run(f) / "host.csv").write_text("t_ns\n"),
        "host.csv: was added later",
    ),
    (
        "a folder in its place",
        lambda f: _folder(a_run(f) / "run.json"),
        "run.json: is no plain file any more",
    ),
    ("a link in its place", lambda f: _link(a_run(f) / "run.json"), "run.json: is no plain file any more"),
    ("the gates", lambda f: replace(f / "signed/gates.yml", "1.10", "9.10"), "gates.yml: was changed"),
    (
        "the figures",
        lambda f: replace(f / "signed/signoff.json", "PASS", "FAIL"),
        "signoff.json: was changed",
    ),
    (
        "the list",
        lambda f: without_line(f / "signed/SHA256SUMS", "routes.json"),
        "does not state the sum of SHA256",
    ),
    (
        "the list's own",
        lambda f: without_line(f / "signed/SHA256SUMS", "gates.yml"),
        "gates.yml is not in SHA256SUMS",
    ),
    (
        "the sum in the document",
        lambda f: replace(f / "signed/signoff.html", 'sha256">', 'sha256">0'),
        "does not state",
    ),
]


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize(("what", "spoil", "says"), CHANGES, ids=[row[0] for row in CHANGES])
def test_a_change_is_found(folder: Path, what: str, spoil: Callable[[Path], object], says: str) -> None:
    spoil(folder)
    result = run("verify", folder / "signed")
    assert result.exit_code == 1, what
    assert says in result.stdout
    assert "good: " not in result.stdout


def test_a_report_that_came_later_is_no_change(folder: Path) -> None:
    (a_run(folder) / "report.html").write_text("<!DOCTYPE html>")
    assert run("verify", folder / "signed").exit_code == 0


def test_a_name_in_the_list_cannot_steer_the_terminal(folder: Path) -> None:
    with (folder / "signed" / "SHA256SUMS").open("a") as file:
        file.write("0" * 64 + "  \x1b[31mred\n")
    result = run("verify", folder / "signed")
    assert result.exit_code == 1
    assert "\x1b" not in result.stdout
    assert "\\x1b[31mred: is missing" in result.stdout


NO_SIGNOFF: list[tuple[str, Callable[[Path], object], str]] = [
    ("nothing there", lambda f: shutil.rmtree(f / "signed"), "cannot be read: No such file"),
    ("no list", lambda f: (f / "signed/SHA256SUMS").unlink(), "SHA256SUMS: cannot be read"),
    ("no document", lambda f: (f / "signed/signoff.html").unlink(), "signoff.html: cannot be read"),
    ("a broken list", lambda f: (f / "signed/SHA256SUMS").write_text("x\n"), "SHA256SUMS:1: is no line"),
]


@pytest.mark.parametrize(("what", "spoil", "says"), NO_SIGNOFF, ids=[row[0] for row in NO_SIGNOFF])
def test_no_signoff(folder: Path, what: str, spoil: Callable[[Path], object], says: str) -> None:
    spoil(folder)
    result = run("verify", folder / "signed")
    assert result.exit_code == 2, what
    assert says in result.stderr


def test_no_file_of_allowed_signers(folder: Path) -> None:
    result = run("verify", folder / "signed", "--allowed-signers", folder / "none")
    assert result.exit_code == 2
    assert "give a file of allowed signers" in result.stderr


def test_no_password_is_on_a_command_line() -> None:
    key, file, signed = Path("k"), Path("f"), Path("f.sig")
    assert sign_command(key, file) == ["ssh-keygen", "-Y", "sign", "-n", "plimsoll", "-f", "k", "f"]
    assert check_command(signed) == ["ssh-keygen", "-Y", "check-novalidate", "-n", "plimsoll", "-s", "f.sig"]
    assert principals_command(signed, key)[2:] == ["find-principals", "-s", "f.sig", "-f", "k"]
    named = ["-s", "f.sig", "-f", "k", "-I", "a@b"]
    assert verify_command(signed, key, "a@b") == ["ssh-keygen", "-Y", "verify", "-n", "plimsoll", *named]


def keygen(path: Path, password: str = "") -> Path:
    """Make a key; the password is one of a test."""
    if shutil.which("ssh-keygen") is None:
        if MUST_RUN:
            pytest.fail("no ssh-keygen on the path, and CI with PLIMSOLL_LAB=1 needs one")
        pytest.skip("no ssh-keygen on the path")
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", password, "-C", "", "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return path


def allowed(folder: Path, key: Path) -> Path:
    path = folder / f"allowed-{key.name}"
    path.write_text(f'bell@example.com namespaces="plimsoll" {key.with_suffix(".pub").read_text()}')
    return path


@pytest.fixture
def signed(tmp_path: Path) -> tuple[Path, Path]:
    """Return a signed sign-off, and its key."""
    key = keygen(tmp_path / "key")
    return signed_off(tmp_path, "--key", key), key


def test_a_signature_is_checked(signed: tuple[Path, Path], tmp_path: Path) -> None:
    out, key = signed
    assert {path.name for path in out.glob("*.sig")} == {"SHA256SUMS.sig", "signoff.html.sig"}
    anybody = run("verify", out)
    assert anybody.exit_code == 0
    assert "whose key that is was not asked: give --allowed-signers" in anybody.stdout
    known = run("verify", out, "--allowed-signers", allowed(tmp_path, key))
    assert known.exit_code == 0, known.output
    assert known.stdout.count('Good "plimsoll" signature for bell@example.com') == 2
    stranger = run("verify", out, "--allowed-signers", allowed(tmp_path, keygen(tmp_path / "other")))
    assert stranger.exit_code == 1
    assert "is of nobody among the allowed signers" in stranger.stdout


SIGNED_CHANGES: list[tuple[str, Callable[[Path], object], str]] = [
    (
        "the verdict",
        lambda out: replace(out / "signoff.html", ">PASS<", ">FAIL<"),
        "the signature is not right",
    ),
    (
        "no signature any more",
        lambda out: (out / "signoff.html.sig").unlink(),
        "signoff.html: has no signature",
    ),
    ("another's", lambda out: shutil.copy(out / "SHA256SUMS.sig", out / "signoff.html.sig"), "is not right"),
    (
        "an empty one",
        lambda out: (out / "signoff.html.sig").write_text(""),
        "signoff.html: the signature is not right",
    ),
]


@pytest.mark.parametrize(("what", "spoil", "says"), SIGNED_CHANGES, ids=[row[0] for row in SIGNED_CHANGES])
def test_a_change_of_what_is_signed_is_found(
    signed: tuple[Path, Path], tmp_path: Path, what: str, spoil: Callable[[Path], object], says: str
) -> None:
    out, key = signed
    spoil(out)
    result = run("verify", out, "--allowed-signers", allowed(tmp_path, key))
    assert result.exit_code == 1, what
    assert says in result.stdout


def test_a_sign_off_without_signatures_is_not_one_of_allowed_signers(folder: Path, tmp_path: Path) -> None:
    result = run(
        "verify", folder / "signed", "--allowed-signers", allowed(tmp_path, keygen(tmp_path / "key"))
    )
    assert result.exit_code == 1
    assert result.stdout.count("has no signature") == 2


def test_a_key_that_cannot_sign_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    write_both(tmp_path / "e")
    keygen(tmp_path / "key")
    out = tmp_path / "signed"
    (tmp_path / "key").write_text("no key")
    result = run(
        tmp_path / "e", *BACKENDS, "--gates", gates(tmp_path), "--out", out, "--key", tmp_path / "key"
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
    assert run("verify", out, "--allowed-signers", allowed(tmp_path, key)).exit_code == 0
