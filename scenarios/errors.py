"""What can go wrong in a scenario: what the user can put right, and steps that failed on the site."""

from analysis.errors import PlimsollError, SettingsError

__all__ = ["ConsentError", "SettingsError", "StepFailedError"]


class ConsentError(PlimsollError):
    """The scenario changes the site, and nobody said that it may."""


class StepFailedError(Exception):
    """A step of a scenario did not do what it is for.

    `kind` is a name of `errors.json`; `hopeless` says that no later step can succeed either.
    """

    def __init__(self, step: str, kind: str, detail: str, *, hopeless: bool = False) -> None:
        super().__init__(f"{step}: {kind.replace('_', ' ')}: {detail}")
        self.step, self.kind, self.detail, self.hopeless = step, kind, detail, hopeless
