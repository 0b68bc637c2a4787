"""The disks that clones are put on: a folder that exists, or a disk emulated on this machine."""
