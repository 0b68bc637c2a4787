"""The document that a decision is signed on: what was asked, run and found, and sums of all raw data."""
