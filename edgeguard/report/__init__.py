"""One calibration as one page: what was measured, what follows from it, and what nobody has looked at."""
