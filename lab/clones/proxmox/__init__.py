"""Driver `proxmox`: clones of a virtual machine on Proxmox VE, through its API."""
