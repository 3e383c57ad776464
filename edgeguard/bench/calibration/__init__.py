"""Calibration: real requests on the robot's own schedule, the profile made of them, what it means for a robot."""
