"""Run directories become files that other programs read."""
