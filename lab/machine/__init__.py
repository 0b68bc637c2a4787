"""Machines that run commands: this one, or another over SSH. Callers need not know which."""

from lab.machine.local import LocalMachine
from lab.machine.machine import Done, Line, Machine, Process
from lab.machine.ssh import SshMachine

__all__ = ["Done", "Line", "LocalMachine", "Machine", "Process", "SshMachine"]
