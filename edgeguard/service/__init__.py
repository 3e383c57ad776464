"""The guard as a systemd service: its sockets, its notifications, and the client that talks to it."""
