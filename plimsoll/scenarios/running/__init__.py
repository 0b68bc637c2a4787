"""The frame that all scenarios share: settings, consent, the client, sessions, Locust, the command."""
