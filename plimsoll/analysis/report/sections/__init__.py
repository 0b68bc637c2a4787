"""The sections of a report, in files: what each shows, in words, tables and figures."""
