"""Locust's master and workers: their shares of the iterations, and the merge of their shards."""

import sys
import time
from collections.abc import Set
from functools import cache
from pathlib import Path
from typing import Any

import gevent
from gevent.event import Event
from locust import argument_parser, runners
from locust.dispatch import UsersDispatcher
from locust.runners import STATE_MISSING, MasterRunner, WorkerNode

from plimsoll.analysis.merging.merge import merge
from plimsoll.common.errors import PlimsollError, SettingsError
from plimsoll.common.hostile import printable
from plimsoll.rundir.folders import point_latest
from plimsoll.rundir.names import FACTS_FILE, SHARDS_FOLDER
from plimsoll.scenarios.running.settings import IteratedSettings

# Seconds without a sign of life until a worker passes for lost. Locust's 3 are less than a busy machine takes
# to make photographs, or a stalled disk to write.
runners.HEARTBEAT_LIVENESS = 20
# Locust parses its own options anew for each option that comes with an order to start: seconds, there.
argument_parser.default_args_dict = cache(argument_parser.default_args_dict)

_DIRECTORY, _SHARES, _USERS = "plimsoll_directory", "plimsoll_shares", "plimsoll_users"
_WAIT_S = 120.0  # for the shard of a worker that lives
_LOOK_S = 0.1


def shard_of(worker: str, options: dict[str, Any]) -> tuple[Path, int, int]:
    """Return the worker's shard directory, its index and the number of shares, from the master's options."""
    shares = options.get(_SHARES) or []
    if worker not in shares:
        raise SettingsError("this worker joined after the test began: it has no share of the iterations")
    index = shares.index(worker)
    return Path(options[_DIRECTORY]) / SHARDS_FOLDER / str(index), index, len(shares)


def users_of(options: dict[str, Any]) -> int | None:
    """Return the number of users of all workers, from the master's options; None without one."""
    return options.get(_USERS)


class FixedDispatcher(UsersDispatcher):
    """Locust's dispatcher for workers that each have a share: users stay with the worker they were given to.

    Locust would deal them anew whenever a worker is missing for some seconds, or says twice that it is ready,
    and leave a worker that has a share without users.
    """

    def add_worker(self, worker_node: WorkerNode) -> None:
        """Leave the users where they are."""

    def remove_worker(self, worker_node: WorkerNode) -> None:
        """Leave the users where they are."""


class Master:
    """The master's side: deals shares at the start, waits for shards at the end, merges them."""

    def __init__(self, runner: MasterRunner) -> None:
        self._runner = runner
        self._directory: Path | None = None
        self._merged = Event()
        self._shares: list[str] = []
        self._done: set[str] = set()
        self._lost: set[str] = set()
        self._shards: dict[str, str] = {}
        runner.environment.dispatcher_class = FixedDispatcher
        runner.register_message("plimsoll-done", self._worker_done)
        runner.register_message("plimsoll-shard", self._worker_shard)

    def start(self, directory: Path, options: dict[str, Any], settings: IteratedSettings) -> None:
        """Deal the shares: the options travel with the order to start. Raises SettingsError."""
        clients = self._runner.clients
        shares = sorted(client.id for client in clients.ready + clients.running + clients.spawning)
        if settings.users < len(shares):
            directory.rmdir()
            raise SettingsError(
                f"--users: {settings.users} for {len(shares)} workers; use at least one user for each worker"
            )
        self._directory, self._shares, self._merged = directory, shares, Event()
        self._done, self._lost, self._shards = set(), set(), {}
        gevent.spawn(self._end_when_done, self._runner.environment, directory, self._merged)
        options[_DIRECTORY], options[_SHARES], options[_USERS] = str(directory), shares, settings.users

    def merge(self) -> bool:
        """Wait for the workers' shards and merge them; return whether all went well."""
        directory, self._directory = self._directory, None
        if directory is None:
            return True
        try:
            return self._merge(directory)
        finally:
            self._merged.set()

    def _merge(self, directory: Path) -> bool:
        self._await_shards()
        shards = [directory / SHARDS_FOLDER / str(index) for index in range(len(self._shares))]
        elsewhere = [shard for shard in shards if not (shard / FACTS_FILE).exists()]
        if elsewhere:
            _print(f"{len(elsewhere)} of {len(shards)} shards are elsewhere, in {directory}/shards there.")
            _print(f"Copy them here, then: plimsoll merge {directory}/shards/* --out {directory}")
            return False
        try:
            run = merge(shards, directory)
            point_latest(directory)
        except PlimsollError as error:
            _print(str(error))
            return False
        _print(f"Run directory: {directory}")
        return run.facts.status == "complete" and not run.failed_steps

    def _await_shards(self) -> None:
        """Wait for the shards of all workers that are there, which may not know yet that the test ends."""
        if len(self._shards) < len(self._shares):
            # Locust tells them only after this, when the time of --run-time is up.
            self._runner.send_message("stop")
        until_s = time.monotonic() + _WAIT_S
        while not self._have_ended(self._shards.keys()) and time.monotonic() < until_s:
            gevent.sleep(_LOOK_S)

    def _end_when_done(self, environment: Any, directory: Path, merged: Event) -> None:
        """End the test when no share is left to do; without a web page also quit Locust, whoever ended it.

        Locust itself ends a test whose workers are all missing, but not the process.
        """

        def is_left() -> bool:
            # While users are still being spawned, a worker would begin an ended test again.
            return not (self._have_ended(self._done) and self._runner.spawning_completed)

        while self._directory is directory and is_left():
            gevent.sleep(_LOOK_S)
        environment.runner.stop()
        merged.wait()
        if environment.parsed_options.headless:
            environment.runner.quit()

    def _have_ended(self, shares: Set[str]) -> bool:
        """Return True if all shares but these are lost; say which were lost or came back since last asked."""
        lost = {share for share in self._shares if self._is_lost(share)} - self._shards.keys()
        for share in sorted(lost - self._lost):
            _print(f"Worker {printable(share)} is lost: the rest of its share of the iterations is not done.")
        for share in sorted(self._lost - lost):
            _print(f"Worker {printable(share)} is back.")
        self._lost = lost
        return shares | lost >= set(self._shares)

    def _is_lost(self, share: str) -> bool:
        client = self._runner.clients.get(share)
        return client is None or client.state == STATE_MISSING

    def _worker_done(self, environment: Any, msg: Any, **_: Any) -> None:
        self._done.add(msg.node_id)

    def _worker_shard(self, environment: Any, msg: Any, **_: Any) -> None:
        self._shards[msg.node_id] = msg.data["directory"]


def stop_or_quit(environment: Any) -> None:
    """Stop the test; without a web page also quit Locust."""
    environment.runner.stop()
    if environment.parsed_options.headless:
        environment.runner.quit()


def _print(text: str) -> None:
    print(text, file=sys.stderr)
