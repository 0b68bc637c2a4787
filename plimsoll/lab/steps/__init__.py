"""Changes to a machine as data: steps, and the runner that carries them out."""
