"""`plimsoll doctor`, as it is called."""

import json

import pytest
from click.testing import CliRunner, Result

from plimsoll.cli import main
from plimsoll.doctor import USES, Check, Missing
from tests.support.programs import DOCS


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["doctor", *words])


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Missing]]:
    """Return what is missing by use, for a test to fill; the machine is a good one."""
    lacking: dict[str, list[Missing]] = {}
    monkeypatch.setattr("plimsoll.doctor.find_missing", lambda use, _: lacking.get(use, []))
    monkeypatch.setattr("plimsoll.doctor.check_machine", lambda _: [Check("processors", "8")])
    return lacking


FIO = Missing("fio", "apt-get install fio", "fio")

ROWS: list[tuple[str, dict[str, list[Missing]], list[str], int, str]] = [
    ("all is here", {}, [], 0, "Ready for replay."),
    ("what nobody asked for is missing", {"fileio": [FIO]}, [], 0, "Ready for replay."),
    ("what is asked for is missing", {"fileio": [FIO]}, ["--for", "fileio"], 1, "missing for fileio."),
    ("something else is asked for", {"fileio": [FIO]}, ["--for", "site"], 0, "Ready for replay, site."),
    (
        "bin/replay is missing",
        {"replay": [Missing("bin/replay", "make build")]},
        [],
        1,
        "missing for replay.",
    ),
]


@pytest.mark.parametrize(("why", "missing", "words", "code", "says"), ROWS, ids=[row[0] for row in ROWS])
def test_the_answer(
    bench: dict[str, list[Missing]],
    why: str,
    missing: dict[str, list[Missing]],
    words: list[str],
    code: int,
    says: str,
) -> None:
    bench.update(missing)
    done = run(*words)
    assert done.exit_code == code, why
    assert done.output.endswith(f"{says}\n")
    for lacking in missing.values():
        assert f"{lacking[0].what}: {lacking[0].get}" in done.output
    told = json.loads(run(*words, "--json").output)
    assert told["ready"] == (code == 0)
    assert told["packages"] == [one.package for lack in missing.values() for one in lack if one.package]


def test_a_machine_that_is_not_fit(bench: dict[str, list[Missing]], monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        Check("open files", "64", "bad", "raise it"),
        Check("governor", "powersave", "caution", "faster"),
    ]
    monkeypatch.setattr("plimsoll.doctor.check_machine", lambda _: found)
    done = run()
    assert done.exit_code == 1
    assert "  x open files  64\n                raise it\n  ! governor    powersave\n" in done.output
    assert done.output.endswith("Ready for replay. This machine is not fit to generate load: open files.\n")


def test_it_looks_at_this_machine() -> None:
    told = json.loads(run("--measure-s", "0", "--json").output)
    assert [use["use"] for use in told["uses"]] == list(USES)
    assert [check["name"] for check in told["machine"]][:2] == ["processors", "clock"]


def test_wrong_usage() -> None:
    assert run("--for", "everything").exit_code == 2
    assert run("--measure-s", "-1").exit_code == 2


def test_every_use_is_documented() -> None:
    page = (DOCS / "doctor.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert [f"| `{name}` | {use.what} |" for name, use in USES.items()] == rows
