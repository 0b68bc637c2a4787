"""Which experiment is meant: the folder that is named, the last one of a lab.yml, or the last in results/."""

from pathlib import Path

from plimsoll.common.errors import SettingsError
from plimsoll.lab.experiment.folder import ExperimentFolder, folders
from plimsoll.lab.experiment.settings import read_lab

DEFAULT_OUT = Path("results")


class NoExperimentError(SettingsError):
    """There is no such experiment yet."""


def find_experiment(file: Path | None) -> ExperimentFolder:
    """Return the experiment that `file` means: its folder, the last one of its name, or the last of all.

    Raises NoExperimentError, or SettingsError where lab.yml is wrong.
    """
    if file is not None and file.is_dir():
        return ExperimentFolder(file)
    if file is not None:
        lab = read_lab(file)
        found, where = list(folders(lab.out, lab.name)), f"called {lab.name} in {lab.out}"
    else:
        found, where = list(folders(DEFAULT_OUT)), f"in {DEFAULT_OUT}"
    if not found:
        raise NoExperimentError(f"there is no experiment {where}; start one: plimsoll run LAB.yml")
    return found[0]
