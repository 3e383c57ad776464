"""A running guard: the process that owns tick and wire, the caller's handle to it, and the caller's own loop."""
