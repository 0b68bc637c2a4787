"""A scenario's module as a locustfile: its users, run here, from Locust's web page, or among workers."""

import signal
import sys
import time
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

import gevent
from flask import jsonify, request
from gevent.event import Event
from locust import User, argument_parser, constant, events, runners, task
from locust.dispatch import UsersDispatcher
from locust.env import Environment
from locust.exception import StopUser
from locust.runners import STATE_MISSING, LocalRunner, MasterRunner, WorkerNode, WorkerRunner

from plimsoll.analysis.exchange.merge import merge_shards
from plimsoll.common.errors import PlimsollError, SettingsError
from plimsoll.common.hostile import printable
from plimsoll.rundir.find import point_latest
from plimsoll.rundir.names import FACTS_FILE, SHARDS_FOLDER
from plimsoll.scenarios.running.client import SentRequest, SiteClient, StepFailedError
from plimsoll.scenarios.running.clonelist import require_ready
from plimsoll.scenarios.running.session import HOPELESS_IN_A_ROW, Iterations, Session, run_directory
from plimsoll.scenarios.running.settings import IteratedSettings, add_to_locust, cautions, read_locust_options

# Seconds without a sign of life until a worker passes for lost. Locust's 3 are less than a busy machine takes
# to make photographs, or a stalled disk to write.
runners.HEARTBEAT_LIVENESS = 20
# Locust parses its own options again for each option that comes with an order to start: seconds, there.
argument_parser.default_args_dict = cache(argument_parser.default_args_dict)
_DIRECTORY, _SHARES, _USERS = "plimsoll_directory", "plimsoll_shares", "plimsoll_users"
_WAIT_S = 120.0  # for the shard of a worker that lives
_LOOK_S = 0.1
Progress = Callable[[int, int], None]
Say = Callable[[str], None]
Check = Callable[[dict[str, Any], str | None], None]  # of Locust's options and host
_OWN_NAMES = {"user_count": "num_users"}  # of the form's fields, where Locust's options have another


class ScenarioUser(User):
    """The base of all scenarios' users; a scenario fills in `begin`, `iterate` and `end`."""

    abstract = True
    wait_time = constant(0)
    scenario: ClassVar[str]
    settings_type: ClassVar[type[IteratedSettings]]

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self.session: Session = environment.plimsoll
        self.number = self.session.new_client_number()
        self.iteration = 0
        self._has_begun = False
        self._since_ns = 0  # the last measure of this iteration, or its start
        self.site = SiteClient(self.settings, self._report_request)

    @property
    def settings(self) -> Any:
        """This run's settings, of the scenario's `settings_type`."""
        return self.session.settings

    @classmethod
    def prepare(cls, settings: Any, say: Callable[[str], None], *, has_target: bool = True) -> None:
        """Prepare this machine before the run's clock starts. Raises PlimsollError.

        `has_target`: the clone can be asked already.
        """

    def begin(self) -> None:
        """Begin once, before the first iteration, e.g. by a login. A failure ends the run."""

    def iterate(self, number: int) -> None:
        """Do iteration `number`. Raises StepFailedError."""
        raise NotImplementedError

    def end(self, well: bool) -> None:
        """End, after the last iteration, what `begin` began; `well` is False if the run failed."""

    def measure(self, name: str, value: float, unit: str = "ms", ended_ns: int | None = None) -> None:
        """Record a figure other than a request's, with this iteration's number.

        `ended_ns` of `time.monotonic_ns` is when the event ended, default now.
        """
        writer = self.session.writer
        t_ns = None if ended_ns is None else max(writer.since_start_ns(ended_ns), 0)
        writer.measure(name, value, unit, iteration=self.iteration, t_ns=t_ns)
        self._since_ns = writer.now_ns()

    def fault(self, error: StepFailedError) -> None:
        """Record a failure without a request of its own, e.g. an image that never became ready."""
        self.session.writer.failed_step(
            error.step, error.kind, error.detail, iteration=self.iteration, client=self.number
        )

    def on_start(self) -> None:
        """Begin, when Locust starts this user; the first iteration may have to wait.

        The very first user begins alone: a wrong password is tried once, not once per user.
        """
        with self.session.admit_first() as hopeful:
            if not hopeful:
                return
            try:
                with self._record_failure():
                    self.begin()
                self._has_begun = True
            except (StepFailedError, PlimsollError) as error:
                self.session.give_up(str(error))
                return  # to `next_iteration`, which ends this user; Locust would log what is raised here
            except Exception as error:
                self.session.give_up(f"an error in the scenario itself: {error!r}")
                raise
        self.session.wait_to_begin()

    @task
    def next_iteration(self) -> None:
        """Do the next iteration, or stop this user if there is none."""
        work = self.session.work
        number = work.next(may_begin=self.session.may_begin)
        if number is None:
            raise StopUser
        self.iteration, well = number, False
        self._since_ns = self.session.writer.now_ns()
        try:
            with self._record_failure():
                self.iterate(number)
            well = True
        except StopUser:  # the iteration was abandoned: neither done nor failed
            raise
        except StepFailedError as error:
            self.session.note_failed_iteration(number, self._since_ns)
            if error.hopeless:
                self.session.give_up(str(error))
            elif work.failed_in_a_row + 1 >= HOPELESS_IN_A_ROW:
                self.session.give_up(f"{HOPELESS_IN_A_ROW} iterations failed one after another: {error}")
        except PlimsollError as error:  # e.g. the disk under the run directory is full
            self.session.give_up(str(error))
        except Exception as error:  # Locust would log it and go on for ever
            self.session.give_up(f"an error in the scenario itself: {error!r}")
            raise
        work.count(well)

    def on_stop(self) -> None:
        """End, when Locust stops this user."""
        self.iteration = 0
        try:
            if self._has_begun:
                self.end(self.session.hopeless is None)
        except StepFailedError as error:
            self.session.writer.event("clean-up failed", detail=str(error)[:300])
        finally:
            self.site.close()

    @contextmanager
    def _record_failure(self) -> Iterator[None]:
        """Record a failed step that has no failed request; the others are recorded with theirs."""
        before = self.session.writer.failed_steps
        try:
            yield
        except StepFailedError as error:
            if self.session.writer.failed_steps == before:
                self.fault(error)
            raise

    def _report_request(self, sent: SentRequest) -> None:
        self.session.report_request(sent, self.iteration, self.number)


def on_locust(user: type[ScenarioUser]) -> Callable[[IteratedSettings, Progress, Say], tuple[Path, bool]]:
    """Return the function that runs the scenario headless: its directory, and whether all went well."""

    def run(settings: IteratedSettings, progress: Progress, say: Say) -> tuple[Path, bool]:
        require_ready(user.scenario, settings)
        user.prepare(settings, say)
        session = run_headless(user, settings, progress, say)
        return session.directory, session.went_well

    return run


def run_headless(
    user: type[ScenarioUser], settings: IteratedSettings, progress: Progress, say: Say
) -> Session:
    """Run `user`'s scenario to its end and return its session, with a complete run directory.

    After a first Ctrl-C the run ends with the requests in flight; a second one ends it at once. Both keep the
    records.
    """
    user.host = settings.target
    environment = Environment(user_classes=[user], host=settings.target)
    work = Iterations(settings.planned)
    handler = _EndOnInterrupt(work, say)
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        directory = run_directory(settings.out, user.scenario)
        session = Session(user.scenario, settings, directory, work, environment.events.request.fire)
        environment.events.request.add_listener(session.write_request)  # type: ignore[no-untyped-call]
        environment.plimsoll = session  # type: ignore[attr-defined]
        runner = environment.create_local_runner()
        with session.writer:
            point_latest(directory)
            runner.start(min(settings.users, settings.planned or settings.users), spawn_rate=100)
            while not handler.left:
                # A greenlet that is done is false: compare with None.
                spawned = runner.spawning_greenlet is not None and runner.spawning_greenlet.ready()
                if spawned and runner.user_count == 0:
                    break
                progress(work.done, max(session.expected(), work.done))
                gevent.sleep(0.05)
            runner.quit()
            progress(work.done, work.done if work.is_all_done else session.expected())
            session.finish()
    finally:
        for number, former in before.items():
            signal.signal(number, former)
    return session


class _EndOnInterrupt:
    """A signal handler: the first interrupt ends the work, the second the run."""

    def __init__(self, work: Iterations, say: Say) -> None:
        self._work, self._say, self.left = work, say, False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self._work.ended:
            self.left = True
            return
        self._work.end()
        self._say("Interrupted: finishing requests in flight. Press Ctrl-C again to stop at once.")


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

        def check(options: dict[str, Any], host: str | None) -> None:
            require_ready(self._user.scenario, read_locust_options(self._user.settings_type, options, host))

        refuse_on_page(environment, check)

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
            users = count_users(options) or users
        settings = read_locust_options(
            self._user.settings_type, options | {"num_users": users}, environment.host
        )
        require_ready(self._user.scenario, settings)
        for caution in cautions(settings):
            print(f"{self._user.scenario}: {caution}", file=sys.stderr)
        if self.master:
            self.master.start(run_directory(settings.out, self._user.scenario), options, settings)
            return
        self._user.prepare(settings, lambda text: print(text, file=sys.stderr))
        if isinstance(runner, WorkerRunner):
            directory, index, shares = find_shard(runner.client_id, options)
        else:
            directory, index, shares = run_directory(settings.out, self._user.scenario), 0, 1
        work = Iterations(settings.planned, index, shares)
        self.session = Session(
            self._user.scenario, settings, directory, work, environment.events.request.fire
        )
        environment.plimsoll = self.session  # type: ignore[attr-defined]
        gevent.spawn(self._watch, environment, self.session)

    def request(self, **of: Any) -> None:
        if self.session:
            self.session.write_request(**of)

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
            if runner is None or not (work.is_all_done or work.ended) or runner.user_count:
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


def refuse_on_page(environment: Environment, check: Check) -> None:
    """Have `check` look at each form before Locust does; the page shows what it raises (PlimsollError).

    Without it the page says that the test began, and only the terminal why it did not.
    """
    app = environment.web_ui and environment.web_ui.app
    if not app:
        return

    def refuse() -> Any:
        if request.method != "POST" or not request.path.endswith("/swarm"):
            return None
        form = {_OWN_NAMES.get(name, name): value for name, value in request.form.items()}
        try:
            check(vars(environment.parsed_options) | form, form.get("host") or environment.host)
        except PlimsollError as error:
            return jsonify({"success": False, "message": str(error), "host": environment.host})
        return None

    app.before_request(refuse)


def find_shard(worker: str, options: dict[str, Any]) -> tuple[Path, int, int]:
    """Return the worker's shard directory, its index and the number of shares, from the master's options."""
    shares = options.get(_SHARES) or []
    if worker not in shares:
        raise SettingsError("this worker joined after the test began: it has no share of the iterations")
    index = shares.index(worker)
    return Path(options[_DIRECTORY]) / SHARDS_FOLDER / str(index), index, len(shares)


def count_users(options: dict[str, Any]) -> int | None:
    """Return the number of users of all workers, from the master's options; None without one."""
    return options.get(_USERS)


class FixedDispatcher(UsersDispatcher):
    """Locust's dispatcher for workers that each have a share: users stay with the worker they were given to.

    Locust would redistribute them whenever a worker is missing for some seconds, or says twice that it is
    ready, and leave a worker that has a share without users.
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
        runner.register_message("plimsoll-done", self._note_done)
        runner.register_message("plimsoll-shard", self._note_shard)

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
        # Wait for the shards of all workers that are there, which may not know yet that the test ends.
        if len(self._shards) < len(self._shares):
            # Locust tells them only after this, when the time of --run-time is up.
            self._runner.send_message("stop")
        until_s = time.monotonic() + _WAIT_S
        while not self._have_ended(self._shards.keys()) and time.monotonic() < until_s:
            gevent.sleep(_LOOK_S)
        shards = [directory / SHARDS_FOLDER / str(index) for index in range(len(self._shares))]
        elsewhere = [shard for shard in shards if not (shard / FACTS_FILE).exists()]
        if elsewhere:
            _print(f"{len(elsewhere)} of {len(shards)} shards are elsewhere, in {directory}/shards there.")
            _print(f"Copy them here, then: plimsoll merge {directory}/shards/* --out {directory}")
            return False
        try:
            run = merge_shards(shards, directory)
            point_latest(directory)
        except PlimsollError as error:
            _print(str(error))
            return False
        _print(f"Run directory: {directory}")
        return run.facts.status == "complete" and not run.failed_steps

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
        """Return True if all other shares are lost; report the newly lost and those that are back."""
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

    def _note_done(self, environment: Any, msg: Any, **_: Any) -> None:
        self._done.add(msg.node_id)

    def _note_shard(self, environment: Any, msg: Any, **_: Any) -> None:
        self._shards[msg.node_id] = msg.data["directory"]


def stop_or_quit(environment: Any) -> None:
    """Stop the test; without a web page also quit Locust."""
    environment.runner.stop()
    if environment.parsed_options.headless:
        environment.runner.quit()


def _print(text: str) -> None:
    print(text, file=sys.stderr)
