"""Machines that run commands: this one, or another over SSH. Callers need not know which."""

from plimsoll.lab.machine.local import LocalMachine
from plimsoll.lab.machine.machine import Done, Line, Machine, Process
from plimsoll.lab.machine.ssh import SshMachine

__all__ = ["Done", "Line", "LocalMachine", "Machine", "Process", "SshMachine"]
