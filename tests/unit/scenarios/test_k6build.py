"""Which k6 is used, and what is said where there is none."""

from pathlib import Path

import pytest

from plimsoll.scenarios.k6 import build as k6build
from plimsoll.scenarios.k6.build import MODULE, NoK6Error, k6_program, k6_version, pinned_version
from tests.support.programs import ROOT


def said(_: str) -> None:
    """Nobody listens."""


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_the_benchmarks_and_the_scenarios_use_one_k6() -> None:
    pins = [path.read_text() for path in (MODULE / "go.mod", ROOT / "benchmarks" / "go" / "go.mod")]
    assert pinned_version(pins[0]) == pinned_version(pins[1])
    assert (MODULE / "go.sum").exists()


def test_a_k6_of_ones_own_is_used(tmp_path: Path) -> None:
    own = script(tmp_path / "k6", 'echo "k6 v1.9.2 (commit/x, go1.25.0, linux/amd64)"')
    assert k6_program(said, {"PLIMSOLL_K6": str(own)}) == (own, "1.9.2")


UNUSABLE = [
    ("an old one", 'echo "k6 v0.57.0 (go1.23.0, linux/amd64)"', "is k6 0.57.0, too old"),
    ("another program", 'echo "GNU tar 1.34.0"', "is not a k6"),
    ("one that fails", "exit 3", "is not a k6"),
]


@pytest.mark.parametrize(("why", "text", "says"), UNUSABLE)
def test_what_is_no_k6_is_refused(tmp_path: Path, why: str, text: str, says: str) -> None:
    own = script(tmp_path / "k6", text)
    with pytest.raises(NoK6Error, match=says):
        k6_program(said, {"PLIMSOLL_K6": str(own)})


def test_a_k6_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoK6Error, match="not a k6 that can be run"):
        k6_program(said, {"PLIMSOLL_K6": str(tmp_path / "nothing")})
    assert k6_version(tmp_path / "nothing") is None


@pytest.fixture
def unbuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in which k6 was never built; its folder for programs."""
    monkeypatch.setattr(k6build, "BINARY", tmp_path / "bin" / "k6")
    return tmp_path / "bin"


def test_without_go_the_remedies_are_named(unbuilt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GO", "/nowhere/go")
    with pytest.raises(NoK6Error, match=r"needs Go 1\.26 or newer: install it .*or set PLIMSOLL_K6"):
        k6_program(said, {})


def go(path: Path, build: str) -> str:
    """A Go compiler that says that it is 1.26, and builds as told; the file to write is $4."""
    return str(script(path, f'if [ "$1" = env ]; then echo "${{GOES:-go1.26.0}}"; exit; fi\n{build}'))


def test_an_old_go_is_refused(unbuilt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GO", go(tmp_path / "go", "exit 1"))
    monkeypatch.setenv("GOES", "go1.19.8")
    with pytest.raises(NoK6Error, match=r"is go1\.19\.8"):
        k6_program(said, {})


def test_a_failed_build_says_its_last_words_and_leaves_nothing_half(
    unbuilt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "GO", go(tmp_path / "go", 'echo half > "$4"; echo "dial tcp: no route to host"; exit 1')
    )
    with pytest.raises(NoK6Error, match="cannot be built: dial tcp: no route to host"):
        k6_program(said, {})
    assert sorted(path.name for path in unbuilt.iterdir()) == [".k6-build.log", ".k6.lock"]


def test_a_build_is_done_once(unbuilt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = pinned_version((MODULE / "go.mod").read_text())
    program = f'#!/bin/sh\\necho "k6 v{version} (go1.26.0)"\\n'
    made = f'printf \'{program}\' > "$4"; chmod 755 "$4"; echo >> "{tmp_path}/builds"'
    monkeypatch.setenv("GO", go(tmp_path / "go", made))
    told: list[str] = []
    for _ in range(2):
        assert k6_program(told.append, {}) == (unbuilt / "k6", version)
    assert (tmp_path / "builds").read_text().count("\n") == 1
    assert len(told) == 2, "when it begins and when it is done"
