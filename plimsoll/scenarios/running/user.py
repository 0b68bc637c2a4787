"""A user of the site, in Locust's sense: takes iterations until there are no more."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from locust import User, constant, task
from locust.exception import StopUser

from plimsoll.common.errors import PlimsollError
from plimsoll.scenarios.running.client import Sent, SiteClient, StepFailedError
from plimsoll.scenarios.running.session import HOPELESS_IN_A_ROW, Session
from plimsoll.scenarios.running.settings import IteratedSettings


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
        self.site = SiteClient(self.settings, self._sent)

    @property
    def settings(self) -> Any:
        """This run's settings, of the scenario's `settings_type`."""
        return self.session.settings

    @classmethod
    def prepare(cls, settings: Any, say: Callable[[str], None]) -> None:
        """Prepare this machine before the run's clock starts. Raises PlimsollError."""

    def begin(self) -> None:
        """Begin once, before the first iteration, e.g. by a login. A failure ends the run."""

    def iterate(self, number: int) -> None:
        """Do iteration `number`. Raises StepFailedError."""
        raise NotImplementedError

    def end(self, well: bool) -> None:
        """End, after the last iteration, what `begin` began; `well` is False if the run failed."""

    def measure(self, name: str, value: float, unit: str = "ms", ended_ns: int | None = None) -> None:
        """Record a figure other than a request's, with this iteration's number.

        `ended_ns` of `time.monotonic_ns` is when what it tells of ended, default now.
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

        The first user of all begins alone: a wrong password is tried once, not once by each user.
        """
        with self.session.first_alone() as hopeful:
            if not hopeful:
                return
            try:
                with self._recorded_failure():
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
        number = work.next(in_time=self.session.in_time)
        if number is None:
            raise StopUser
        self.iteration, well = number, False
        self._since_ns = self.session.writer.now_ns()
        try:
            with self._recorded_failure():
                self.iterate(number)
            well = True
        except StopUser:  # the iteration was abandoned: neither done nor failed
            raise
        except StepFailedError as error:
            self.session.iteration_failed(number, self._since_ns)
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
    def _recorded_failure(self) -> Iterator[None]:
        """Record a failed step that has no failed request; the others are recorded with theirs."""
        before = self.session.writer.failed_steps
        try:
            yield
        except StepFailedError as error:
            if self.session.writer.failed_steps == before:
                self.fault(error)
            raise

    def _sent(self, sent: Sent) -> None:
        self.session.sent(sent, self.iteration, self.number)
