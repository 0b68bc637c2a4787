"""Proxmox's API: who asks, how, and what its answers mean."""

from plimsoll.lab.proxmox.api import ProxmoxApi
from plimsoll.lab.proxmox.connection import ApiSettings, connect

__all__ = ["ApiSettings", "ProxmoxApi", "connect"]
