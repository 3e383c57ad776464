"""edgeguard: a deadline guard for robots with a language model on board."""

__version__ = "0.1.0"
