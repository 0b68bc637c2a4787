"""The run directory of docs/run-format.md: found, read and written. `bin/replay` writes the same format."""
