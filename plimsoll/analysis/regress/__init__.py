"""The nights before: run-level figures in a database, change points, a baseline, and the news of tonight."""
