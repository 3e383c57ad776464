"""The driver's wire over the serial link: sends a set-point and knows how long its frame is on the line.

Both ends say one frame a tick: what is on the line for longer than that would arrive ever later.
"""

from __future__ import annotations

from edgeguard.clock import NS_PER_MS, ms_from_ns
from edgeguard.config import Config
from edgeguard.errors import ConfigError
from edgeguard.link import Codec, Link, SerialPort, make_codec
from edgeguard.types import LinkStatus, SetPoint
from edgeguard.types.wire import NS_PER_BYTE_AT_1_BAUD, wire_time_ns

_COMMON_BAUDS = (9_600, 19_200, 38_400, 57_600, 115_200, 230_400, 460_800, 921_600)


class SerialWire:
    """The link that a configuration describes. It opens by itself when polled, and says then what is in the way."""

    def __init__(self, config: Config, *, port: str | None) -> None:
        path = port or config.link.port
        if not path:
            raise ConfigError(f"{config.file}: link.port: missing; name the serial port (or pass port)")
        self._baud = config.link.baud
        self._link = Link(
            open_port=lambda: SerialPort(path=path, baud=config.link.baud),
            codec=wire_codec(config),
            axis_count=len(config.axes),
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
    return wire_time_ns(wire_codec(config).command_bytes, baud=config.link.baud)


def wire_problems(config: Config) -> list[str]:
    """Whether a command, and its echo the other way, leave the line free for the next one a tick later; in words."""
    codec, baud, tick_ns = wire_codec(config), config.link.baud, config.timing.tick_ns
    longest, what = max((codec.command_bytes, "a command"), (codec.echo_bytes, "an echo"))
    takes_ns = wire_time_ns(longest, baud=baud)
    if takes_ns <= tick_ns:
        return []
    needed = -(-longest * NS_PER_BYTE_AT_1_BAUD // tick_ns)
    enough = next((common for common in _COMMON_BAUDS if common >= needed), needed)
    return [
        f"link.baud: {baud} is too slow: {what} of {longest} bytes needs {ms_from_ns(takes_ns):.1f} ms, a tick is "
        f"{ms_from_ns(tick_ns):g} ms; use {enough} baud or more, or a tick_ms of at least {-(-takes_ns // NS_PER_MS)}"
    ]


def wire_codec(config: Config) -> Codec:
    """The codec that the configuration names, for its axes."""
    return make_codec(config.link.codec, axes=[axis.name for axis in config.axes])
