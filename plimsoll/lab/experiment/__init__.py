"""From one lab.yml to all its runs: planned, carried out, found again after a crash, and removed."""
