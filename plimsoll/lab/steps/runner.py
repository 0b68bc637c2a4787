"""The runner of steps: carries them out, one after another, and keeps what they capture."""

import asyncio
import re
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol
from urllib.parse import urlsplit

import requests

from plimsoll.lab.errors import LabError, MachineError
from plimsoll.lab.machine import Machine
from plimsoll.lab.steps.step import Call, Command, Room, Serve, Step, as_shell, fill_step

_LOOK_S = 10.0  # for one request to a site that may not serve yet
_CAUSE = re.compile(r"\[Errno -?[0-9]+\] ([^'\")]+)")  # within the words of requests and urllib3
_DU_S = 3600.0

OnStep = Callable[[Step], None]  # gets each step, filled in, before it is carried out


class Api(Protocol):
    """The API that calls go to: Proxmox's."""

    async def call(self, call: Call) -> Any:
        """Return the answer, after the task that the call started where that is to be waited for.

        None where it is gone and may be. Raises LabError.
        """
        ...


class StepRunner:
    """Carries out steps on one machine. What they captured is in `captured`."""

    def __init__(self, machine: Machine, api: Api | None = None, on_step: OnStep = lambda _: None) -> None:
        self.machine, self.captured = machine, dict[str, str]()
        self._api, self._on_step = api, on_step

    async def do(self, steps: Iterable[Step]) -> None:
        """Carry out `steps`. Raises MachineError or LabError at the first that fails."""
        for template in steps:
            try:
                step = fill_step(template, self.captured)
            except KeyError as error:  # what was cut off early has yet to capture it
                raise LabError(f"{template.says or 'a step'}: {error.args[0]} is not known yet") from None
            self._on_step(step)
            if isinstance(step, Command):
                await self._run(step)
            elif isinstance(step, Call):
                await self._ask(step)
            elif isinstance(step, Serve):
                await self._await(step)
            else:
                await self._measure(step)

    async def _run(self, step: Command) -> None:
        until_s = time.monotonic() + step.until_s
        while True:
            try:
                done = await self.machine.run(
                    step.words,
                    stdin=None if step.stdin is None else step.stdin.encode(),
                    timeout_s=step.timeout_s,
                    check=not step.may_fail,
                )
                break
            except MachineError as error:
                if time.monotonic() >= until_s:
                    raise error.while_doing(step.says) from None
                await asyncio.sleep(1)
        if step.capture:
            self.captured[step.capture] = done.out.strip()

    async def _ask(self, step: Call) -> None:
        if self._api is None:
            raise LabError(f"{as_shell(step)}: there is no API to call")
        answer = await self._api.call(step)
        if answer is None and step.may_be_gone:
            return
        for key, value in step.expects:
            found = answer.get(key) if isinstance(answer, dict) else None
            if found != value:
                raise LabError(
                    f"{as_shell(step)}: {key} is {found}, not {value}: it does not belong to the lab, so it "
                    "stays"
                )
        if step.capture:
            if step.field is not None:
                answer = answer.get(step.field) if isinstance(answer, dict) else None
            if answer is None:
                raise LabError(f"{as_shell(step)}: the answer has no {step.field or 'data'}")
            self.captured[step.capture] = str(answer)

    async def _await(self, step: Serve) -> None:
        until_s, why = time.monotonic() + step.timeout_s, "it was not asked"
        while time.monotonic() < until_s:
            why = await asyncio.to_thread(answer_of, step)
            if not why:
                return
            await asyncio.sleep(0.5)
        raise LabError(f"{step.url}: does not serve the site after {step.timeout_s:g} s: {why}")

    async def _measure(self, step: Room) -> None:
        done = await self.machine.run(["df", "-P", "-B1", "--", step.folder])
        free_bytes = int(done.out.splitlines()[-1].split()[3])
        needed_bytes = step.bytes
        if step.like:
            done = await self.machine.run(["du", "-sx", "-B1", "--", step.like], timeout_s=_DU_S)
            needed_bytes += int(done.out.split()[0])
        if needed_bytes > free_bytes:
            raise LabError(
                f"{self.machine.name}: {step.folder} has {free_bytes / 2**30:.1f} GiB free, and "
                f"{needed_bytes / 2**30:.1f} GiB are needed: make room, or choose another folder"
            )


def answer_of(step: Serve) -> str:
    """Ask once. Return the reason why it does not serve, empty if it does."""
    url, headers = step.url, {}
    if step.connect_to:
        parts = urlsplit(url)
        headers["Host"] = parts.netloc
        url = parts._replace(netloc=step.connect_to).geturl()
    try:
        with requests.get(
            url,
            headers=headers,
            timeout=_LOOK_S,
            verify=False,  # noqa: S501 whether it serves is asked, not who it is
            allow_redirects=False,
            stream=True,
        ) as answer:
            return "" if answer.status_code < 400 else f"it answers {answer.status_code}"
    except requests.RequestException as error:
        found = _CAUSE.search(str(error))
        return found[1] if found else str(error)[:200]
