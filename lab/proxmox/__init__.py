"""Proxmox's API: who asks, how, and what its answers mean."""

from lab.proxmox.api import ProxmoxApi
from lab.proxmox.connection import connect
from lab.proxmox.settings import ApiSettings

__all__ = ["ApiSettings", "ProxmoxApi", "connect"]
