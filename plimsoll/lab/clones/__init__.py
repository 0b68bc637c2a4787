"""Drivers that clone the site, one a file: static, compose, qemu, libvirt, proxmox."""
