from ros_messages import Odometry

__all__ = ["Odometry"]
