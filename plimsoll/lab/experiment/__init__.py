"""From one lab.yml to all its runs: what is planned, carried out, found again after a crash, and removed."""
