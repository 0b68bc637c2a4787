"""Connects a scenario to `plimsoll scenario`, to Locust's web page, and to Locust's master and workers."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent
from locust import events
from locust.env import Environment
from locust.runners import LocalRunner, MasterRunner, WorkerRunner

from plimsoll.common.errors import PlimsollError
from plimsoll.rundir.folders import point_latest
from plimsoll.scenarios.running.clonelist import require_ready
from plimsoll.scenarios.running.headless import Progress, Say, run_headless
from plimsoll.scenarios.running.session import Session, run_directory
from plimsoll.scenarios.running.settings import (
    IteratedSettings,
    add_to_locust,
    cautions,
    from_locust,
)
from plimsoll.scenarios.running.shards import Master, shard_of, stop_or_quit, users_of
from plimsoll.scenarios.running.user import ScenarioUser
from plimsoll.scenarios.running.webpage import refuse_on_page
from plimsoll.scenarios.running.work import Work


def runs(user: type[ScenarioUser]) -> Callable[[IteratedSettings, Progress, Say], tuple[Path, bool]]:
    """Return the function that runs the scenario headless: its directory, and whether all went well."""

    def run(settings: IteratedSettings, progress: Progress, say: Say) -> tuple[Path, bool]:
        require_ready(user.scenario, settings)
        user.prepare(settings, say)
        session = run_headless(user, settings, progress, say)
        return session.directory, session.well

    return run


def locustfile(user: type[ScenarioUser]) -> None:
    """Make the module that defines `user` a locustfile: options, a run directory for each test."""
    run = _LocustRun(user)
    hooks: list[tuple[Any, Callable[..., None]]] = [
        (events.init_command_line_parser, run.options),
        (events.init, run.init),
        (events.test_start, run.start),
        (events.request, run.request),
        (events.test_stop, run.stop),
    ]
    for hook, listener in hooks:
        hook.add_listener(listener)


class _LocustRun:
    """The tests of one Locust process; between tests `session` is None."""

    def __init__(self, user: type[ScenarioUser]) -> None:
        self._user = user
        self.session: Session | None = None
        self.master: Master | None = None

    def options(self, parser: Any, **_: Any) -> None:
        add_to_locust(self._user.settings_type, parser)

    def init(self, environment: Environment, **_: Any) -> None:
        if isinstance(environment.runner, MasterRunner):
            self.master = Master(environment.runner)
        refuse_on_page(environment, self._check)

    def _check(self, options: dict[str, Any], host: str | None) -> None:
        require_ready(self._user.scenario, from_locust(self._user.settings_type, options, host))

    def start(self, environment: Environment, **_: Any) -> None:
        try:
            self._start(environment)
        except PlimsollError as error:
            for line in str(error).splitlines():
                print(f"{self._user.scenario}: {line}", file=sys.stderr)
            _refuse(environment)

    def _start(self, environment: Environment) -> None:
        runner, options = environment.runner, vars(environment.parsed_options)
        users = runner.target_user_count if runner and runner.target_user_count else options.get("num_users")
        if isinstance(runner, WorkerRunner):  # its own users are a share of those that shape the load
            users = users_of(options) or users
        settings = from_locust(self._user.settings_type, options | {"num_users": users}, environment.host)
        require_ready(self._user.scenario, settings)
        for caution in cautions(settings):
            print(f"{self._user.scenario}: {caution}", file=sys.stderr)
        if self.master:
            self.master.start(run_directory(settings.out, self._user.scenario), options, settings)
            return
        self._user.prepare(settings, lambda text: print(text, file=sys.stderr))
        if isinstance(runner, WorkerRunner):
            directory, index, shares = shard_of(runner.client_id, options)
        else:
            directory, index, shares = run_directory(settings.out, self._user.scenario), 0, 1
        work = Work(settings.planned, index, shares)
        self.session = Session(
            self._user.scenario, settings, directory, work, environment.events.request.fire
        )
        environment.plimsoll = self.session  # type: ignore[attr-defined]
        gevent.spawn(self._watch, environment, self.session)

    def request(self, **of: Any) -> None:
        if self.session:
            self.session.recorded(**of)

    def stop(self, environment: Environment, **_: Any) -> None:
        session, self.session = self.session, None
        if session:
            well = session.finish()
            environment.process_exit_code = 0 if well else 1
            if isinstance(environment.runner, WorkerRunner):
                environment.runner.send_message("plimsoll-shard", {"directory": str(session.directory)})
            else:
                point_latest(session.directory)
                print(f"Run directory: {session.directory}", file=sys.stderr)
        if self.master:
            merged = 0 if self.master.merge() else 1
            environment.process_exit_code = environment.process_exit_code or merged

    def _watch(self, environment: Environment, session: Session) -> None:
        """End the test when all iterations are done, or none can be."""
        while self.session is session:
            gevent.sleep(0.1)
            work, runner = session.work, environment.runner
            # Users that have stopped have cleaned up too.
            if runner is None or not (work.whole or work.ended) or runner.user_count:
                continue
            if isinstance(runner, WorkerRunner):
                runner.send_message("plimsoll-done", None)
            elif runner.spawning_greenlet is None or not runner.spawning_greenlet.ready():
                continue
            else:
                stop_or_quit(environment)
            return


def _refuse(environment: Environment) -> None:
    """End a test that may not begin: the process with exit code 2, or with a web page this test only."""
    runner = environment.runner
    if not environment.web_ui:
        environment.process_exit_code = 2
        # The greenlet that begins a test is one of the runner's own: it cannot wait for the runner's end.
        gevent.spawn(runner.quit) if runner else sys.exit(2)
    if isinstance(runner, LocalRunner):
        raise gevent.GreenletExit
