"""How unevenly instances share the clients of a log, and what that does to their lag (docs/scaling.md)."""
