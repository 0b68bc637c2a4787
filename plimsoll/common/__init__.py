"""Tools that every part uses: errors, hostile text, files, validation, progress, units, defaults, news."""
