"""Where clones are put: a folder that exists, or a disk emulated on this machine."""
