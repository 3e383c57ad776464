"""The guard in virtual time: a scripted world around the real core, the real link and the motor controller's physics.

Minutes of events run in milliseconds, and the same script always gives the same run. What is simulated: the robot's
motion, the observations, the line, the model's process. What is not: that the guard itself is late, unless the script
says so, and how a supervisor's own messages travel.
"""
