"""What the scenarios on WordPress share: logging in, forms, nonces, the REST interface."""
