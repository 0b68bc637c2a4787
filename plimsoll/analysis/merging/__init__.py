"""Shards of one run become one run: what `plimsoll merge` does."""
