"""The parts that scenarios on WordPress share: login, forms, nonces, the REST interface."""
