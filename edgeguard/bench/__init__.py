"""The bench: measures a real worker on this machine, and says in the user's terms what can be relied on.

What all rooms share lies here: the worker that is asked, what it is, what it is asked, and how percentiles are read.
"""
