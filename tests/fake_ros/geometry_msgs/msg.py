from ros_messages import TwistStamped

__all__ = ["TwistStamped"]
