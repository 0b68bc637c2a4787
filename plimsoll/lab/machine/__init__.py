"""Machines that run commands: this one, or another over SSH. Callers need not know which."""

from plimsoll.lab.machine.machine import LocalMachine, Machine, SshMachine, WrappedMachine, script_command
from plimsoll.lab.machine.process import Done, Line, Process

__all__ = [
    "Done",
    "Line",
    "LocalMachine",
    "Machine",
    "Process",
    "SshMachine",
    "WrappedMachine",
    "script_command",
]
