"""Errors of scenarios: those that the user can correct, and steps that failed on the site."""

from collections.abc import Callable, Iterable

from plimsoll.common.errors import PlimsollError, SettingsError

__all__ = ["ConsentError", "SettingsError", "StepFailedError", "problem_of", "raise_all"]


class ConsentError(PlimsollError):
    """The scenario would change a site without consent."""


class StepFailedError(Exception):
    """A step of a scenario failed.

    `kind` is a name of `errors.json`; `hopeless` means that no later step can succeed.
    """

    def __init__(self, step: str, kind: str, detail: str, *, hopeless: bool = False) -> None:
        super().__init__(f"{step}: {kind.replace('_', ' ')}: {detail}")
        self.step, self.kind, self.detail, self.hopeless = step, kind, detail, hopeless


def problem_of(check: Callable[[], object]) -> PlimsollError | None:
    """Return what `check` raises that the user can put right, or None."""
    try:
        check()
    except PlimsollError as error:
        return error
    return None


def raise_all(problems: Iterable[PlimsollError | None]) -> None:
    """Raise the one problem there is; several as one SettingsError, a line each."""
    found = [problem for problem in problems if problem]
    if len(found) == 1:
        raise found[0]
    if found:
        lines = [line for problem in found for line in str(problem).splitlines()]
        raise SettingsError("\n".join(dict.fromkeys(lines)))
