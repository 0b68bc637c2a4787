"""Driver `proxmox`: clones of a virtual machine or a container on Proxmox VE, through its API."""
