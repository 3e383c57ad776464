from ros_messages import LaserScan

__all__ = ["LaserScan"]
