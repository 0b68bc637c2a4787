"""Factors of lab.yml: what is varied besides the backend, and the variants that come of it."""
