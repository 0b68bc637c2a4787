"""Other programs' results become run directories: k6's samples, The Grinder's data logs."""
