"""The tools that every part uses: errors, hostile text, atomic files, redaction, progress, YAML, units."""
