"""Machines that run commands: this one, or another over SSH. Callers need not know which."""

from plimsoll.lab.machine.machine import LocalMachine, Machine, SshMachine, WrappedMachine, script_command
from plimsoll.lab.machine.process import CommandResult, Line, Process

__all__ = [
    "CommandResult",
    "Line",
    "LocalMachine",
    "Machine",
    "Process",
    "SshMachine",
    "WrappedMachine",
    "script_command",
]
