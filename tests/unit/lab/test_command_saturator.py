"""The saturator `command`: its names, its line format, and what it cleans up."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.machine import Line, LocalMachine
from plimsoll.lab.saturators import aim_saturator, any_command, find_saturator_kind, make_saturator
from plimsoll.lab.saturators.saturator import LineProgress, Runner, fill_words
from plimsoll.lab.steps.runner import StepRunner
from tests.unit.lab.test_copy_saturators import BY, COMMAND, HOME, settings_of


def test_a_command_gets_its_names() -> None:
    assert fill_words(["@own", "of=@clone/@own.x", "a@own", "@@own", "@owner", "@clone"], "l", "/d") == [
        "plimsoll-l",
        "of=/d/plimsoll-l.x",
        "a@own",
        "@@own",
        "@owner",
        "/d",
    ]
    given_ = COMMAND | {"start": ["dd", "of=@clone/@own"], "cleanup": ["rm", "-f", "--", "@clone/@own"]}
    settings = aim_saturator(settings_of(given_), HOME)
    assert any_command.command(settings, "l") == ["dd", "of=/srv/lab/plimsoll-l"]  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="@clone: is missing"):
        aim_saturator(settings_of(given_), DataLocation())


@pytest.mark.parametrize(
    ("form", "counts", "lines", "said"),
    [
        (r"^(?P<bytes>\d+) bytes", "total", ["5 bytes", "x", "9 bytes (9 B) copied"], [5, None, 9]),
        (r"wrote (?P<bytes>\d+)", "each", ["a: wrote 5", "b: wrote 7", "c"], [5, 12, None]),
        (r"(?P<bytes>[\d.]+) (?P<unit>\w+) done", "total", ["1.5 KiB done", "2 qB done"], [1536, None]),
        (r"(?P<bytes>\d+)?%", "total", ["%"], [None]),
    ],
)
def test_a_line_format(form: str, counts: str, lines: list[str], said: list[int | None]) -> None:
    figures = LineProgress(re.compile(form), counts == "each")
    assert [figures.read(Line("err", line, 0)) for line in lines] == said


def test_a_command_is_started_again_and_cleaned_up_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plimsoll.lab.saturators.any_command._MARKS", str(tmp_path))
    work = 'echo x >>"$0"; printf "1000 bytes\\r2000 bytes\\n" >&2'
    given_ = COMMAND | {
        "start": ["sh", "-c", work, f"{tmp_path}/@own.log"],
        "cleanup": ["rm", "-f", "--", f"{tmp_path}/@own.log"],
        "interval_s": 0.1,
    }
    events: list[dict[str, Any]] = []
    log, marked = tmp_path / f"plimsoll-{BY}.log", tmp_path / f"plimsoll-{BY}.command"

    async def drive() -> None:
        machine = LocalMachine()
        settings = settings_of(given_)
        one = make_saturator(machine, settings, BY, events.append)
        log.write_text("of a crash\n")
        await one.start()
        async with asyncio.timeout(30):
            while not log.exists() or log.read_text().count("x") < 3:
                await asyncio.sleep(0.02)
        assert "crash" not in log.read_text()
        assert marked.is_dir()
        found = await find_saturator_kind(settings).find(machine, settings, BY, "ssd")
        assert [one.what for one in found] == [f"what the saturator's command left, marked by {marked}"]
        await one.stop()
        assert await find_saturator_kind(settings).find(machine, settings, BY, "ssd") == []
        marked.mkdir()
        log.touch()
        for left in await find_saturator_kind(settings).find(machine, settings, BY, "ssd"):
            await StepRunner(machine).do(left.remove)
        await machine.close()

    asyncio.run(drive())
    assert list(tmp_path.iterdir()) == []
    assert events[-1]["bytes"] >= 3 * 2000


def test_a_clean_up_that_fails_is_tried_again_by_lab_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plimsoll.lab.saturators.any_command._MARKS", str(tmp_path))
    settings = settings_of(COMMAND | {"cleanup": ["sh", "-c", f"test ! -e {tmp_path}/stuck"]})

    async def drive() -> list[Any]:
        machine = LocalMachine()
        one = make_saturator(machine, settings, BY, lambda event: None)
        assert isinstance(one, Runner)
        await one.start()
        (tmp_path / "stuck").touch()
        with pytest.raises(Exception, match="ended with status 1"):
            await one.stop()
        found = await find_saturator_kind(settings).find(machine, settings, BY, "ssd")
        await machine.close()
        return found

    assert len(asyncio.run(drive())) == 1
