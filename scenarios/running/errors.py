"""Errors of scenarios: those that the user can correct, and steps that failed on the site."""

from plimsoll.common.errors import PlimsollError, SettingsError

__all__ = ["ConsentError", "SettingsError", "StepFailedError"]


class ConsentError(PlimsollError):
    """The scenario would change a site without consent."""


class StepFailedError(Exception):
    """A step of a scenario failed.

    `kind` is a name of `errors.json`; `hopeless` means that no later step can succeed.
    """

    def __init__(self, step: str, kind: str, detail: str, *, hopeless: bool = False) -> None:
        super().__init__(f"{step}: {kind.replace('_', ' ')}: {detail}")
        self.step, self.kind, self.detail, self.hopeless = step, kind, detail, hopeless
