"""The black box: a flight log that survives the power cut, and what reads it. Nothing in the guard waits for it."""
