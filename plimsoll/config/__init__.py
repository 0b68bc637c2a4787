"""Defaults of options from `plimsoll.toml` and the environment, and `plimsoll config`, which shows them."""
