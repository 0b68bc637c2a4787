"""k6 for visitors and browsers: built once, run as a child; its samples become a run directory."""
