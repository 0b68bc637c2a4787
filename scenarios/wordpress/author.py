"""What somebody has in common who logs in to WordPress and makes things there."""

from typing import Literal

import gevent
from gevent.lock import BoundedSemaphore
from pydantic import Field

from scenarios.credentials import credentials
from scenarios.errors import StepFailedError
from scenarios.settings import ChangingSettings
from scenarios.user import ScenarioUser
from scenarios.wordpress.account import log_in
from scenarios.wordpress.rest import Rest

CLEAN_UP = "clean up"
# WordPress forgets one of two logins of one account at the same instant: it keeps both in one record.
_ONE_AT_A_TIME = BoundedSemaphore()
# No later iteration of the same account can do better.
_FOR_GOOD = ("no_permission", "login_failed")


class AuthorSettings(ChangingSettings):
    """What an author can be told."""

    clean_up: Literal["always", "failed", "never"] = Field(
        "failed",
        description="What of its work is deleted at the end: always all of it, what failed (an iteration, "
        "or the whole run), or never any.",
    )


class Author(ScenarioUser):
    """Logs in first, notes what it makes, and cleans up at the end. A scenario fills in `work`."""

    abstract = True
    collection = "posts"

    def begin(self) -> None:
        """Log in."""
        self.who = credentials(self.settings)
        self.rest = Rest(self.site, self.who)
        self._of_iteration: list[int] = []
        self._made: list[int] = []
        self._failed: list[int] = []
        with _ONE_AT_A_TIME:
            log_in(self.site, self.who)

    def iterate(self, number: int) -> None:
        """Do the work, and sort what it made by whether it went well."""
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
        self._made += self._of_iteration

    def work(self, number: int) -> None:
        """Do iteration `number`. Raises StepFailedError."""
        raise NotImplementedError

    def made(self, number: int) -> None:
        """Note a post of `collection` that this iteration has made."""
        if number not in self._of_iteration:
            self._of_iteration.append(number)

    def pause(self, seconds: float) -> None:
        """Think, but not once the run is being ended."""
        while seconds > 0 and not self.session.work.ended:
            gevent.sleep(min(seconds, 0.2))
            seconds -= 0.2

    def end(self, well: bool) -> None:
        """Delete what the settings say. Raises StepFailedError when something stayed, after trying all."""
        doomed = {
            "always": self._made + self._failed,
            "failed": self._failed if well else self._made + self._failed,
            "never": [],
        }[self.settings.clean_up]
        last: StepFailedError | None = None
        for number in doomed:
            try:
                self.rest.send(
                    CLEAN_UP, "DELETE", f"wp/v2/{self.collection}/{number}", query={"force": "true"}
                )
            except StepFailedError as error:
                last = error
        if last:
            raise last
