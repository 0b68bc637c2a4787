"""Names of what the lab makes and touches: checked before they become part of a path or a command. Pure."""
