"""The errors of tuning."""

from plimsoll.lab.errors import LabError


class TuningError(LabError):
    """The tuning cannot be applied to this host, or not all of it could be put back."""
