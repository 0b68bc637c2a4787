"""The base of users who log in to WordPress and create posts or media."""

import gevent

from plimsoll.rundir.events import CREATED, REMOVED
from plimsoll.scenarios.running.client import StepFailedError
from plimsoll.scenarios.running.clonelist import credentials
from plimsoll.scenarios.running.locustfile import ScenarioUser
from plimsoll.scenarios.running.session import CLEAN_UP
from plimsoll.scenarios.wordpress.account import Rest, log_in

CreatedItem = tuple[str, int]  # kind and number
# No later iteration of the same account can do better.
_FOR_GOOD = ("no_permission", "login_failed")


class Author(ScenarioUser):
    """A user who logs in first and deletes its work at the end. A scenario fills in `work`.

    `kind` is that of its work, one of `KINDS`; all of it is to bear `session.run_name`.
    """

    abstract = True
    kind = "post"

    def begin(self) -> None:
        """Name the run, and log in."""
        self.run_name = self.session.run_name
        self.who = credentials(self.settings)
        self.rest = Rest(self.site, self.who)
        self._of_iteration: list[CreatedItem] = []
        self._succeeded: list[CreatedItem] = []
        self._failed: list[CreatedItem] = []
        log_in(self.site, self.who)

    def iterate(self, number: int) -> None:
        """Do the work, and note what it made as that of a good or a failed iteration."""
        self._of_iteration = []
        try:
            self.work(number)
        except StepFailedError as error:
            self._failed += self._of_iteration
            hopeless = error.hopeless or error.kind in _FOR_GOOD
            raise StepFailedError(error.step, error.kind, error.detail, hopeless=hopeless) from None
        except BaseException:
            self._failed += self._of_iteration
            raise
        self._succeeded += self._of_iteration

    def work(self, number: int) -> None:
        """Do iteration `number`. Raises StepFailedError."""
        raise NotImplementedError

    def note_created(self, number: int, kind: str | None = None) -> None:
        """Note what this iteration created, here and in the run's events; `kind` as a rule its own."""
        made = kind or self.kind, number
        if made not in self._of_iteration:
            self._of_iteration.append(made)
            self._event(CREATED, made)

    def pause(self, seconds: float) -> None:
        """Pause, but only until the run ends."""
        while seconds > 0 and not self.session.work.ended:
            gevent.sleep(min(seconds, 0.2))
            seconds -= 0.2

    def end(self, well: bool) -> None:
        """Delete what was made as the settings say. Raises StepFailedError, after all, if one remains."""
        made = {
            "always": self._succeeded + self._failed,
            "failed": self._failed if well else self._succeeded + self._failed,
            "never": [],
        }[self.settings.clean_up]
        last: StepFailedError | None = None
        for kind, number in made:
            try:
                self.rest.delete(CLEAN_UP, kind, number)
                self._event(REMOVED, (kind, number))
            except StepFailedError as error:
                last = error
        if last:
            raise last

    def _event(self, event: str, made: CreatedItem) -> None:
        (kind, number), writer = made, self.session.writer
        writer.event(
            event, kind=kind, id=number, run=self.run_name, iteration=self.iteration, client=self.number
        )
