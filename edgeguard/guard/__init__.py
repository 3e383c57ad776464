"""The guard's core: what is decided in each step, from inputs, state and the time that is handed in. Pure."""
