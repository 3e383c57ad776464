"""A working stand-in for the few calls of rclpy that the guide's node makes: topics, timers and clocks in one process.

``spin`` runs the callbacks of every node of the process, one after the other, as ROS runs them in several processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.executors import ExternalShutdownException


class Context:
    """One ROS graph."""

    def __init__(self) -> None:
        self.subscriptions: list[tuple[type, str, Callable[[Any], None]]] = []
        self.timers: list[Timer] = []
        self.inbox: list[tuple[Callable[[Any], None], Any]] = []
        self.log: list[str] = []
        self.running = True


class Timer:
    def __init__(self, period_s: float, callback: Callable[[], None], clock: Clock) -> None:
        self.period_ns, self.callback, self.clock = round(period_s * 1e9), callback, clock
        self.due_ns = clock.now().nanoseconds + self.period_ns


class Node:
    def __init__(self, context: Context, name: str) -> None:
        self._context, self._name = context, name

    def create_publisher(self, kind: type, topic: str, qos: Any) -> Any:
        def publish(message: Any) -> None:
            assert isinstance(message, kind)
            matching = [one for one in self._context.subscriptions if one[:2] == (kind, topic)]
            self._context.inbox += [(callback, message) for _, _, callback in matching]

        return SimpleNamespace(publish=publish)

    def create_subscription(self, kind: type, topic: str, callback: Callable[[Any], None], qos: Any) -> None:
        self._context.subscriptions.append((kind, topic, callback))

    def create_timer(self, period_s: float, callback: Callable[[], None], clock: Clock | None = None) -> None:
        self._context.timers.append(Timer(period_s, callback, clock or self.get_clock()))

    def get_clock(self) -> Clock:
        return Clock(clock_type=ClockType.ROS_TIME)

    def get_logger(self) -> Any:
        log = self._context.log
        return SimpleNamespace(info=log.append, warning=lambda text, **_throttle: log.append(text))


_contexts: list[Context] = []


def init(*, args: Sequence[str]) -> None:
    """A new graph, unless one runs (the test's robot is on it)."""
    if not _contexts:
        _contexts.append(Context())


def context() -> Context:
    return _contexts[-1]


def create_node(name: str) -> Node:
    return Node(context(), name)


def try_shutdown() -> None:
    for one in _contexts:
        one.running = False
    _contexts.clear()


def spin(node: Node) -> None:
    graph = context()
    while graph.running:
        for timer in graph.timers:
            if timer.clock.now().nanoseconds >= timer.due_ns:
                timer.due_ns += timer.period_ns
                timer.callback()
        waiting, graph.inbox = graph.inbox, []
        for callback, message in waiting:
            callback(message)
        time.sleep(0.0005)
    raise ExternalShutdownException
