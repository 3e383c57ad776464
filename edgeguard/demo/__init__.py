"""The demo: a real model drives a simulated robot through three rooms, and then everything that can fail does."""
