"""The errors, as one small tree. Every message is one sentence for whoever typed the command."""


class PlimsollError(Exception):
    """Anything that the user can put right; the command prints the message and exits 2."""


class SettingsError(PlimsollError):
    """Options or a file that cannot be used; the message has all problems, a line each."""


class RunDirectoryError(PlimsollError):
    """The directory is not a run directory, or not one that can be read."""


class FormatVersionError(RunDirectoryError):
    """The run directory was written in a format that this version does not know."""


class DamagedFileError(RunDirectoryError):
    """A file of the run directory does not hold what docs/run-format.md says."""


class NoRequestsError(RunDirectoryError):
    """The run directory holds not one whole record."""


class OutputError(PlimsollError):
    """The report cannot be written where it should go."""


class HistoryError(PlimsollError):
    """The history of runs cannot be opened, read or written."""
