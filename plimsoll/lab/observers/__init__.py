"""Samples what the host under test does, once a second, into `host.csv` of a run directory.

Each observer is a table of columns over one text that the host gives, and a line in `registry`; `sampler`
reads them all in one go.
"""

from plimsoll.lab.observers.fsync_place import Probed, ProbePlace
from plimsoll.lab.observers.hostcsv import HostCsv
from plimsoll.lab.observers.place import place
from plimsoll.lab.observers.registry import OBSERVERS, ObserverSettings, observer
from plimsoll.lab.observers.sampler import Sampler, sampler_of

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
