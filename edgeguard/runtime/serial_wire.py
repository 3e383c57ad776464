"""The driver's wire over the serial link: sends a set-point and knows how long its frame is on the line."""

from __future__ import annotations

from edgeguard.config import Config
from edgeguard.errors import ConfigError
from edgeguard.link import Link, SerialPort, make_codec
from edgeguard.types import LinkStatus, SetPoint
from edgeguard.types.wire import wire_time_ns


class SerialWire:
    """The link that a configuration describes. It opens by itself when polled, and says then what is in the way."""

    def __init__(self, config: Config, *, port: str | None) -> None:
        path = port or config.link.port
        if not path:
            raise ConfigError(f"{config.file}: link.port: missing; name the serial port (or pass port)")
        axes = [axis.name for axis in config.axes]
        self._baud = config.link.baud
        self._link = Link(
            open_port=lambda: SerialPort(path=path, baud=config.link.baud),
            codec=make_codec(config.link.codec, axes=axes),
            axis_count=len(axes),
            echo_timeout_ns=config.link.echo_timeout_ns,
        )

    def connect(self, *, now_ns: int) -> None:
        """Open now, or fail with ``LinkError``: for whoever wants to know at the start."""
        self._link.connect(now_ns=now_ns)

    @property
    def fileno(self) -> int | None:
        return self._link.fileno()

    def poll(self, *, now_ns: int) -> LinkStatus:
        return self._link.poll(now_ns=now_ns)

    def transmit(self, set_point: SetPoint, *, now_ns: int) -> int | None:
        sent = self._link.send(set_point, now_ns=now_ns)
        return wire_time_ns(len(sent.frame), baud=self._baud) if sent is not None and sent.written else None

    def close(self) -> None:
        self._link.close()


def command_wire_ns(config: Config) -> int:
    """How long one command's frame is on the line: a part of the budget."""
    codec = make_codec(config.link.codec, axes=[axis.name for axis in config.axes])
    return wire_time_ns(codec.command_bytes, baud=config.link.baud)
