"""The lab's steps, carried out in part: whoever did them died."""

import asyncio

import pytest

from plimsoll.lab.steps.runner import StepRunner
from plimsoll.lab.steps.step import Step
from tests.support.programs import eventually
from tests.support.sitestack import run


async def cut_off(steps: list[Step], container: str, runner: StepRunner) -> None:
    """Carry out `steps`, and die as soon as a container of that name is another than it was."""

    def there() -> str:
        return run("docker", "ps", "-q", "--filter", f"name=^{container}").stdout

    before = there()
    doing = asyncio.create_task(runner.do(steps))

    def runs() -> bool:
        return there() not in ("", before) or doing.done()

    assert await asyncio.to_thread(eventually, runs, 600)
    assert not doing.done(), doing.exception() if doing.done() else ""
    doing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await doing
