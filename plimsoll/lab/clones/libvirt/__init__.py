"""Driver `libvirt`: clones of a domain, by virsh."""
