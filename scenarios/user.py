"""A user of the site, in Locust's sense: takes iterations until there are no more."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from locust import User, constant, task
from locust.exception import StopUser

from analysis.errors import PlimsollError
from scenarios.client import Sent, SiteClient
from scenarios.errors import StepFailedError
from scenarios.session import HOPELESS_IN_A_ROW, Session
from scenarios.settings import IteratedSettings


class ScenarioUser(User):
    """What the users of all scenarios have in common; a scenario fills in `begin`, `iterate`, `end`."""

    abstract = True
    wait_time = constant(0)
    scenario: ClassVar[str]
    settings_type: ClassVar[type[IteratedSettings]]

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self.session: Session = environment.plimsoll
        self.number = self.session.new_client_number()
        self.iteration = 0
        self.site = SiteClient(self.settings, self._sent)

    @property
    def settings(self) -> Any:
        """This run's settings, of the scenario's `settings_type`."""
        return self.session.settings

    @classmethod
    def prepare(cls, settings: Any, say: Callable[[str], None]) -> None:
        """What is made ready on this machine before the run's clock starts. Raises PlimsollError."""

    def begin(self) -> None:
        """What a user does once, before the first iteration, e.g. log in. Its failure ends the run."""

    def iterate(self, number: int) -> None:
        """Do iteration `number`. Raises StepFailedError."""
        raise NotImplementedError

    def end(self, well: bool) -> None:
        """What a user does last; `well` says whether the run did not fail."""

    def measure(self, name: str, value: float, unit: str = "ms") -> None:
        """Note a figure that is no single request, with this iteration's number."""
        self.session.writer.measure(name, value, unit, iteration=self.iteration)

    def fault(self, error: StepFailedError) -> None:
        """Note a failure that no request of its own stands for, e.g. an image that never became ready."""
        self.session.writer.failed_step(
            error.step, error.kind, error.detail, iteration=self.iteration, client=self.number
        )

    def on_start(self) -> None:
        """Begin, when Locust starts this user."""
        try:
            with self._noted():
                self.begin()
        except StepFailedError as error:
            self.session.give_up(str(error))
            raise StopUser from None
        except Exception as error:
            self.session.give_up(f"a fault in the scenario itself: {error!r}")
            raise

    @task
    def next_iteration(self) -> None:
        """Do the next iteration, or leave when there is none."""
        work = self.session.work
        number = work.next(in_time=self.session.in_time)
        if number is None:
            raise StopUser
        self.iteration, well = number, False
        try:
            with self._noted():
                self.iterate(number)
            well = True
        except StopUser:  # the iteration was left half-way: neither done nor failed
            raise
        except StepFailedError as error:
            if error.hopeless:
                self.session.give_up(str(error))
            elif work.failed_in_a_row + 1 >= HOPELESS_IN_A_ROW:
                self.session.give_up(f"{HOPELESS_IN_A_ROW} iterations failed one after another: {error}")
        except PlimsollError as error:  # e.g. the disk under the run directory is full
            self.session.give_up(str(error))
        except Exception as error:  # Locust would log it and go on for ever
            self.session.give_up(f"a fault in the scenario itself: {error!r}")
            raise
        work.tell(well)

    def on_stop(self) -> None:
        """End, when the user leaves or is stopped."""
        self.iteration = 0
        try:
            self.end(self.session.hopeless is None)
        except StepFailedError as error:
            self.session.writer.event("clean-up failed", detail=str(error)[:300])
        finally:
            self.site.close()

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Note a failed step that no request of its own stands for: the others were noted with theirs."""
        before = self.session.writer.failed_steps
        try:
            yield
        except StepFailedError as error:
            if self.session.writer.failed_steps == before:
                self.fault(error)
            raise

    def _sent(self, sent: Sent) -> None:
        self.session.sent(sent, self.iteration, self.number)
