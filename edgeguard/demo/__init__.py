"""The main job on a simulated robot, told as a story: the model drives, then everything that can fail does."""
