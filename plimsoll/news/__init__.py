"""News to a command or a web hook: what `plimsoll regress` and `plimsoll run` tell their users."""
