from ros_messages import String

__all__ = ["String"]
