"""Driver `qemu`: virtual machines of an image, by QEMU alone."""
