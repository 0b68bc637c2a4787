"""Proxmox's API: who asks, how, and what its answers mean."""

from plimsoll.lab.proxmox.api import ProxmoxApi
from plimsoll.lab.proxmox.connection import connect
from plimsoll.lab.proxmox.settings import ApiSettings

__all__ = ["ApiSettings", "ProxmoxApi", "connect"]
