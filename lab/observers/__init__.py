"""Samples what the host under test does, once a second, into `host.csv` of a run directory.

Each observer is a table of columns over one text that the host gives; `sampler` reads them all in one go.
"""

from lab.observers.hostcsv import HostCsv
from lab.observers.place import place
from lab.observers.sampler import Sampler, sampler_of
from lab.observers.settings import ObserverName, ObserverSettings

__all__ = ["HostCsv", "ObserverName", "ObserverSettings", "Sampler", "place", "sampler_of"]
