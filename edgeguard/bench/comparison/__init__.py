"""Comparison: several models beside one another on the same cases, how often right and how fast."""
