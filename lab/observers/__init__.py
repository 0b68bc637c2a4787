"""Samples what the host under test does, once a second, into `host.csv` of a run directory.

Each observer is a table of columns over one text that the host gives, and a line in `registry`; `sampler`
reads them all in one go.
"""

from lab.observers.fsync_place import Probed, ProbePlace
from lab.observers.hostcsv import HostCsv
from lab.observers.place import place
from lab.observers.registry import OBSERVERS, ObserverSettings, observer
from lab.observers.sampler import Sampler, sampler_of

__all__ = [
    "OBSERVERS",
    "HostCsv",
    "ObserverSettings",
    "ProbePlace",
    "Probed",
    "Sampler",
    "observer",
    "place",
    "sampler_of",
]
