"""`plimsoll signoff verify`: whatever is missing, was added or was changed since is named."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from plimsoll.analysis.signoff import seal
from plimsoll.analysis.signoff.seal import sha256_of, write_manifest
from tests.support.comparable import pdf_of, runs_of, sign_off, signed_off, stand_in_browser


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two sign-offs, each with a PDF: one that passed, one in `failed` that failed."""
    folder = tmp_path_factory.mktemp("made")
    browser = stand_in_browser(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("plimsoll.analysis.signoff.pdf.find_chromium", lambda: str(browser))
        (folder / "failed").mkdir()
        signed_off(folder)
        signed_off(folder / "failed", ratio=1.5)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """Return a copy of both experiments and their sign-offs; relative names go with it."""
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
    result = sign_off("verify", folder / "signed")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("good: ")
    assert (
        "good: 5 files of the document and 48 of raw data are as MANIFEST and SHA256SUMS have"
        in result.stdout
    )
    stated = hashlib.sha256((folder / "signed/SHA256SUMS").read_bytes()).hexdigest()
    assert f"good: the sum on every page is {stated}" in result.stdout
    assert "note: unsigned: nobody signed MANIFEST" in result.stdout


def test_sha256sum_checks_all_of_it_too(folder: Path) -> None:
    if shutil.which("sha256sum") is None:
        pytest.skip("no sha256sum on the path")
    command = ["sha256sum", "--check", "--strict", "--quiet", "MANIFEST", "SHA256SUMS"]
    subprocess.run(command, cwd=folder / "signed", check=True, capture_output=True)


def others(name: str) -> Callable[[Path], object]:
    """Put a file of the other sign-off in the place of this one's."""
    return lambda folder: shutil.copy(folder / "failed/signed" / name, folder / "signed" / name)


def _listed_anew(folder: Path) -> None:
    """Put the other's page in place, and write a manifest that fits it."""
    others("signoff.html")(folder)
    (folder / "signed/MANIFEST").unlink()
    write_manifest(folder / "signed")


def _summed_anew(folder: Path) -> None:
    """Change a figure, and put the sums that follow from it into both lists and the page."""
    signed = folder / "signed"
    data, evidence = (sha256_of(signed / name) for name in ("signoff.json", "SHA256SUMS"))
    replace(signed / "signoff.json", '"PASS"', '"FAIL"')
    replace(signed / "SHA256SUMS", data, sha256_of(signed / "signoff.json"))
    replace(signed / "signoff.html", evidence, sha256_of(signed / "SHA256SUMS"))
    (signed / "MANIFEST").unlink()
    write_manifest(signed)


def _printed_by_hand(folder: Path) -> None:
    """Put a PDF in place whose second page bears another sum, and write a manifest that fits it."""
    signed = folder / "signed"
    (signed / "signoff.pdf").write_bytes(pdf_of(sha256_of(signed / "SHA256SUMS"), "0" * 64))
    (signed / "MANIFEST").unlink()
    write_manifest(signed)


CHANGES: list[tuple[str, Callable[[Path], object], str]] = [
    ("one bit of a record", lambda f: flip(a_run(f) / "requests.npy"), "requests.npy: was changed"),
    ("a fact of a run", lambda f: replace(a_run(f) / "run.json", "4", "5"), "run.json: was changed"),
    ("a file that is gone", lambda f: (a_run(f) / "summary.json").unlink(), "summary.json: is missing"),
    ("a run that is gone", lambda f: shutil.rmtree(a_run(f)), "run.json: is missing"),
    ("a file that came later", lambda f: (a_run(f) / "host.csv").write_text("t_ns\n"), "host.csv: was added"),
    ("a file that no run has", lambda f: (a_run(f) / "more.txt").write_text(""), "more.txt: was added"),
    (
        "a folder in its place",
        lambda f: _folder(a_run(f) / "run.json"),
        "run.json: is no longer a plain file",
    ),
    ("a link in its place", lambda f: _link(a_run(f) / "run.json"), "run.json: is no longer a plain file"),
    ("the gates", lambda f: replace(f / "signed/gates.yml", "1.10", "9.10"), "gates.yml: was changed"),
    ("figures", lambda f: replace(f / "signed/signoff.json", "PASS", "FAIL"), "signoff.json: was changed"),
    (
        "a verdict",
        lambda f: replace(f / "signed/signoff.html", ">PASS<", ">FAIL<"),
        "signoff.html: was changed",
    ),
    ("another's page", others("signoff.html"), "signoff.html: was changed"),
    ("another's page, listed anew", _listed_anew, "signoff.html: does not state the sum of SHA256SUMS"),
    ("another's PDF", others("signoff.pdf"), "signoff.pdf: was changed"),
    (
        "a figure, both lists and the page, but not the PDF",
        _summed_anew,
        "signoff.pdf: not every page bears the sum of SHA256SUMS",
    ),
    ("one page of the PDF", _printed_by_hand, "signoff.pdf: not every page bears the sum of SHA256SUMS"),
    ("another's evidence", others("SHA256SUMS"), "SHA256SUMS: was changed"),
    ("another's manifest", others("MANIFEST"), "signoff.pdf: was changed"),
    ("no PDF any more", lambda f: (f / "signed/signoff.pdf").unlink(), "signoff.pdf: is missing"),
    ("no page any more", lambda f: (f / "signed/signoff.html").unlink(), "signoff.html: is missing"),
    ("no evidence any more", lambda f: (f / "signed/SHA256SUMS").unlink(), "SHA256SUMS: is missing"),
    ("no manifest any more", lambda f: (f / "signed/MANIFEST").unlink(), "MANIFEST: is missing"),
    ("a second document", lambda f: (f / "signed/signoff-2.pdf").write_text(""), "signoff-2.pdf: was added"),
    ("a hidden file", lambda f: (f / "signed/.more").write_text(""), ".more: was added"),
    ("a broken list", lambda f: (f / "signed/SHA256SUMS").write_text("x\n"), "SHA256SUMS:1: is not a line"),
    ("a broken manifest", lambda f: (f / "signed/MANIFEST").write_text("x\n"), "MANIFEST:1: is not a line"),
    (
        "a line of the list",
        lambda f: without_line(f / "signed/SHA256SUMS", "routes.json"),
        "signoff.html: does not state the sum of SHA256SUMS",
    ),
    (
        "the list's own",
        lambda f: without_line(f / "signed/SHA256SUMS", "gates.yml"),
        "gates.yml: is not in SHA256SUMS",
    ),
    (
        "a line of the manifest",
        lambda f: without_line(f / "signed/MANIFEST", "signoff.html"),
        "signoff.html: is not in MANIFEST",
    ),
    (
        "the PDF's line of the manifest",
        lambda f: without_line(f / "signed/MANIFEST", "signoff.pdf"),
        "signoff.pdf: was added",
    ),
    (
        "a file elsewhere, in the manifest",
        lambda f: listed(f / "signed/MANIFEST", "../experiment"),
        "MANIFEST: ../experiment is not a file of this folder",
    ),
    (
        "a file twice in the manifest",
        lambda f: listed(f / "signed/MANIFEST", "gates.yml"),
        "MANIFEST: gates.yml is in it twice",
    ),
    (
        "the sum in the document",
        lambda f: replace(f / "signed/signoff.html", 'sha256">', 'sha256">0'),
        "does not state",
    ),
]


LARGE: list[tuple[str, str, str]] = [
    ("raw data", "experiment/runs/0001-replay--sata--1/requests.npy", "requests.npy: was changed"),
    ("the page", "signed/signoff.html", "signoff.html: is larger than 64 MiB"),
    ("the PDF", "signed/signoff.pdf", "signoff.pdf: is larger than 64 MiB"),
    ("the gates", "signed/gates.yml", "gates.yml: is larger than 64 MiB"),
    ("the list of the evidence", "signed/SHA256SUMS", "SHA256SUMS: is larger than 64 MiB"),
    ("the manifest", "signed/MANIFEST", "MANIFEST: is larger than 64 MiB"),
    ("the signature", "signed/MANIFEST.sig", "MANIFEST.sig: is larger than 64 MiB"),
]


@pytest.mark.parametrize(("what", "name", "says"), LARGE, ids=[row[0] for row in LARGE])
def test_a_file_that_grew_is_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, what: str, name: str, says: str
) -> None:
    def of_a_small_one(path: Path) -> str:
        assert path.stat().st_size < 1 << 30, f"{path}: is read"
        return sha256_of(path)

    monkeypatch.setattr(seal, "sha256_of", of_a_small_one)
    with (folder / name).open("ab") as file:
        file.truncate(20 << 30)
    result = sign_off("verify", folder / "signed")
    assert result.exit_code == 1, what
    assert says in result.stdout
    assert result.stdout.count(says) == 1


def listed(path: Path, name: str) -> None:
    with path.open("a") as file:
        file.write("0" * 64 + f"  {name}\n")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize(("what", "spoil", "says"), CHANGES, ids=[row[0] for row in CHANGES])
def test_a_change_is_found(folder: Path, what: str, spoil: Callable[[Path], object], says: str) -> None:
    spoil(folder)
    result = sign_off("verify", folder / "signed")
    assert result.exit_code == 1, what
    assert says in result.stdout
    assert "good: " not in result.stdout


def test_a_fail_that_is_made_a_pass_is_found(folder: Path) -> None:
    replace(folder / "failed/signed/signoff.html", "FAIL", "PASS")
    result = sign_off("verify", folder / "failed/signed")
    assert result.exit_code == 1
    assert "WRONG: signoff.html: was changed" in result.stdout
    assert "note: unsigned" in result.stdout


def test_a_report_that_came_later_is_no_change(folder: Path) -> None:
    (a_run(folder) / "report.html").write_text("<!DOCTYPE html>")
    assert sign_off("verify", folder / "signed").exit_code == 0


def test_a_name_in_the_list_cannot_steer_the_terminal(folder: Path) -> None:
    listed(folder / "signed/SHA256SUMS", "\x1b[31mred")
    result = sign_off("verify", folder / "signed")
    assert result.exit_code == 1
    assert "\x1b" not in result.stdout
    assert "\\x1b[31mred: is missing" in result.stdout


def _emptied(path: Path) -> None:
    shutil.rmtree(path)
    path.mkdir()


NO_SIGNOFF: list[tuple[str, Callable[[Path], object]]] = [
    ("nothing there", lambda f: shutil.rmtree(f / "signed")),
    ("an empty folder", lambda f: _emptied(f / "signed")),
]


@pytest.mark.parametrize(("what", "spoil"), NO_SIGNOFF, ids=[row[0] for row in NO_SIGNOFF])
def test_no_signoff(folder: Path, what: str, spoil: Callable[[Path], object]) -> None:
    spoil(folder)
    result = sign_off("verify", folder / "signed")
    assert result.exit_code == 2, what
    assert "signed: holds no sign-off: give the folder that plimsoll signoff wrote" in result.stderr


def test_no_file_of_allowed_signers(folder: Path) -> None:
    result = sign_off("verify", folder / "signed", "--allowed-signers", folder / "none")
    assert result.exit_code == 2
    assert "give a file of allowed signers" in result.stderr
