"""Runs a Locust scenario in this process without a web page: `plimsoll scenario NAME`."""

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

import gevent
from locust.env import Environment

from plimsoll.rundir.folders import point_latest
from plimsoll.scenarios.running.session import Session, run_directory
from plimsoll.scenarios.running.settings import IteratedSettings
from plimsoll.scenarios.running.user import ScenarioUser
from plimsoll.scenarios.running.work import Work

Progress = Callable[[int, int], None]
Say = Callable[[str], None]


def run_headless(
    user: type[ScenarioUser], settings: IteratedSettings, progress: Progress, say: Say
) -> Session:
    """Run `user`'s scenario to its end and return its session, with a complete run directory.

    After a first Ctrl-C the run ends with the requests in flight; a second one ends it at once. Both keep the
    records.
    """
    user.host = settings.target
    environment = Environment(user_classes=[user], host=settings.target)
    work = Work(settings.planned)
    handler = _EndOnInterrupt(work, say)
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        directory = run_directory(settings.out, user.scenario)
        session = Session(user.scenario, settings, directory, work, environment.events.request.fire)
        environment.events.request.add_listener(session.recorded)  # type: ignore[no-untyped-call]
        environment.plimsoll = session  # type: ignore[attr-defined]
        runner = environment.create_local_runner()
        with session.writer:
            point_latest(directory)
            runner.start(min(settings.users, settings.planned or settings.users), spawn_rate=100)
            while not handler.left and not _idle(runner):
                progress(work.done, max(session.expected(), work.done))
                gevent.sleep(0.05)
            runner.quit()
            progress(work.done, work.done if work.whole else session.expected())
            session.finish()
    finally:
        for number, former in before.items():
            signal.signal(number, former)
    return session


def _idle(runner: Any) -> bool:
    # A greenlet that is done is false: compare with None.
    spawned = runner.spawning_greenlet is not None and runner.spawning_greenlet.ready()
    return bool(spawned and runner.user_count == 0)


class _EndOnInterrupt:
    """A signal handler: the first interrupt ends the work, the second the run."""

    def __init__(self, work: Work, say: Say) -> None:
        self._work, self._say, self.left = work, say, False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self._work.ended:
            self.left = True
            return
        self._work.end()
        self._say("Interrupted: finishing requests in flight. Press Ctrl-C again to stop at once.")
