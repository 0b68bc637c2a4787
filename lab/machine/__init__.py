"""Where commands run: on this machine or on another, over SSH. Whoever runs one need not know which."""

from lab.machine.access import Access
from lab.machine.local import LocalMachine
from lab.machine.machine import Done, Line, Machine, Process
from lab.machine.ssh import SshMachine

__all__ = ["Access", "Done", "Line", "LocalMachine", "Machine", "Process", "SshMachine"]
