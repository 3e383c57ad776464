class ExternalShutdownException(Exception):  # noqa: N818 (its name)
    """The context was shut down while a node spun."""
