"""The bench: measures a real worker on this machine, and says in the user's terms what can be relied on."""
