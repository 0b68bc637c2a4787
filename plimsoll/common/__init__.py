"""Tools for every part: errors, hostile text, files, validation, progress, units, defaults, notifications."""
