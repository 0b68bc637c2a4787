"""Where commands run: on this machine or on another, over SSH. Whoever runs one need not know which."""

from lab.machine.local import LocalMachine
from lab.machine.machine import Done, Line, Machine, Process

__all__ = ["Done", "Line", "LocalMachine", "Machine", "Process"]
