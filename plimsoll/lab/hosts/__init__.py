"""A fleet: one command on many hosts at once."""
