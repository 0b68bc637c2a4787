"""The gatekeeper: what counts as evidence, for report, compare, signoff, regress and merge alike."""
