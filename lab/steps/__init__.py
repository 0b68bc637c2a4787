"""Changes to a machine as data: steps, and the doer that carries them out."""
