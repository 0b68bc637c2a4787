"""The saturator `database-dump` in the database's own container, as the lab's clones have it."""

from typing import Any

from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.saturators import find_saturator_kind
from tests.support.disks import run
from tests.support.programs import wait_for
from tests.support.saturators import SETTINGS, command_lines, drive, is_whole_story, until_bytes
from tests.support.site import Site


def test_the_database_of_a_site_is_dumped_in_its_container(site_block: Site) -> None:
    container = f"{site_block.name}-db"
    said = {
        "kind": "database-dump",
        "container": container,
        "sink": {"to": "null"},
        "rate_bytes_per_s": "200K",
    }
    events: list[dict[str, Any]] = []

    async def work() -> None:
        await until_bytes(events, 500_000)
        assert dumps(), "it is in the middle"

    run(lambda machine: drive(machine, SETTINGS.validate_python(said), events, work))
    is_whole_story(events, "database-dump")
    wait_for("the dump ends with the saturator", lambda: not dumps())


def dumps() -> list[str]:
    """The command lines of dumps at work."""
    return [line for line in command_lines() if line.startswith("mariadb-dump --single-transaction")]


def test_a_database_that_the_container_does_not_have_is_told(site_block: Site) -> None:
    settings = SETTINGS.validate_python(
        {"kind": "database-dump", "container": f"{site_block.name}-db", "databases": ["gone"], "retries": 0}
    )

    async def life(machine: LocalMachine) -> None:
        look = find_saturator_kind(settings).checks(settings)[-1]
        answer = await machine.run(look.words, check=False)
        assert answer.status == 1
        assert "it finds 0 of these 1 databases" in answer.err

    run(life)
