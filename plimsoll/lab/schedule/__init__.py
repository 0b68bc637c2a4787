"""Nightly regression runs of a lab.yml: by a systemd timer, or by cron."""
