"""The status of an experiment: what runs now, its figures so far, and when it will end."""
