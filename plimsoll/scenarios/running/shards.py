"""Locust's master and workers: their shares of the iterations, and the merge of their shards."""

import sys
from pathlib import Path
from typing import Any

import gevent
from locust.runners import STATE_MISSING, MasterRunner

from plimsoll.analysis.merging.merge import merge
from plimsoll.common.errors import PlimsollError
from plimsoll.common.hostile import printable
from plimsoll.rundir.folders import point_latest
from plimsoll.rundir.names import FACTS_FILE, SHARDS_FOLDER
from plimsoll.scenarios.running.errors import SettingsError
from plimsoll.scenarios.running.settings import IteratedSettings

_DIRECTORY, _SHARES, _USERS = "plimsoll_directory", "plimsoll_shares", "plimsoll_users"
_WAIT_S = 30.0
_LOOK_S = 0.5


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


class Master:
    """The master's side: deals shares at the start, waits for shards at the end, merges them."""

    def __init__(self, runner: MasterRunner) -> None:
        self._runner = runner
        self._directory: Path | None = None
        self._shares: list[str] = []
        self._done: set[str] = set()
        self._lost: set[str] = set()
        self._shards: dict[str, str] = {}
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
        self._directory, self._shares = directory, shares
        self._done, self._lost, self._shards = set(), set(), {}
        gevent.spawn(self._watch, self._runner.environment, directory)
        options[_DIRECTORY], options[_SHARES], options[_USERS] = str(directory), shares, settings.users

    def merge(self) -> bool:
        """Wait for the workers' shards and merge them; return whether all went well."""
        directory, self._directory = self._directory, None
        if directory is None:
            return True
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
        waited_s = 0.0
        while len(self._shards) + len(self._lost - self._shards.keys()) < len(self._shares):
            if waited_s >= _WAIT_S:
                return
            gevent.sleep(0.1)
            waited_s += 0.1
            self._note_lost()

    def _watch(self, environment: Any, directory: Path) -> None:
        """Count a worker that is lost as one that is done: nobody will do its share."""
        while self._directory is directory:
            gevent.sleep(_LOOK_S)
            if self._note_lost():
                self._stop_when_done(environment)

    def _note_lost(self) -> bool:
        """Return True if a worker is lost that was not before, and say so."""
        lost = {share for share in self._shares if self._is_lost(share)} - self._lost - self._shards.keys()
        for share in sorted(lost):
            _print(f"Worker {printable(share)} is lost: the rest of its share of the iterations is not done.")
        self._lost |= lost
        return bool(lost)

    def _is_lost(self, share: str) -> bool:
        client = self._runner.clients.get(share)
        return client is None or client.state == STATE_MISSING

    def _worker_done(self, environment: Any, msg: Any, **_: Any) -> None:
        self._done.add(msg.node_id)
        self._stop_when_done(environment)

    def _stop_when_done(self, environment: Any) -> None:
        if self._done | self._lost >= set(self._shares):
            gevent.spawn(self._stop, environment)

    def _stop(self, environment: Any) -> None:
        """End the test, but not while users are still being spawned: the worker would begin it again."""
        directory = self._directory
        while not self._runner.spawning_completed:
            gevent.sleep(0.1)
        if self._directory is directory:  # it has not ended meanwhile
            stop_or_quit(environment)

    def _worker_shard(self, environment: Any, msg: Any, **_: Any) -> None:
        self._shards[msg.node_id] = msg.data["directory"]


def stop_or_quit(environment: Any) -> None:
    """Stop the test; without a web page also quit Locust."""
    environment.runner.stop()
    if environment.parsed_options.headless:
        environment.runner.quit()


def _print(text: str) -> None:
    print(text, file=sys.stderr)
