"""The driver's wire over the serial link: sends a set-point and knows how long its frame is on the line.

Both ends say one frame a tick: what is on the line for longer than that would arrive ever later.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgeguard.clock import NS_PER_MS, ms_from_ns
from edgeguard.config import Config
from edgeguard.errors import ConfigError
from edgeguard.guard.standstill import standstill_proof
from edgeguard.guard.stopping import rest_assumed_ns
from edgeguard.link import Carries, Codec, Link, SerialPort, expiry_of, feedback_of, guarantee, make_codec
from edgeguard.link.key_file import read_key
from edgeguard.link.opening import Opening
from edgeguard.link.port import find_port
from edgeguard.types import Action, LinkStatus, SetPoint
from edgeguard.types.wire import NS_PER_BYTE_AT_1_BAUD, Expiry, wire_time_ns

_COMMON_BAUDS = (9_600, 19_200, 38_400, 57_600, 115_200, 230_400, 460_800, 921_600)


def named_port(config: Config, port: str | None) -> str:
    """The port that is given, or the configuration's; ``ConfigError`` when neither names one."""
    path = port or config.link.port
    if not path:
        raise ConfigError(f"{config.file}: link.port: missing; name the serial port (or pass port)")
    return path


class SerialWire:
    """The link that a configuration describes. It opens by itself when polled, and says then what is in the way."""

    def __init__(self, config: Config, *, port: str | None) -> None:
        path = named_port(config, port)
        self._baud = config.link.baud
        self.guarantee = wire_guarantee(config)
        self._path = path
        self._at_start = False
        self._opening = Opening(self._open)
        self._port_note = ""
        self._timeout_ms = round(ms_from_ns(config.link.timeout_ns))
        self._link = Link(
            open_port=self._open_at_some_time,
            codec=wire_codec(config),
            axis_count=len(config.axes),
            echo_timeout_ns=config.link.echo_timeout_ns,
        )

    def connect(self, *, now_ns: int) -> None:
        """Open now, or fail with ``LinkError`` that names who is in the way: for whoever wants to know at the start."""
        self._at_start = True
        self._link.connect(now_ns=now_ns)
        self._at_start = False

    @property
    def fileno(self) -> int | None:
        return self._link.fileno()

    @property
    def note(self) -> str:
        """Which port it is, and where the motor controller is set otherwise than the configuration; for people."""
        theirs_ms = self._link.status.controller_timeout_ms
        if theirs_ms in (None, self._timeout_ms):
            return self._port_note
        other = f"link time-out {theirs_ms} ms, not the {self._timeout_ms} ms of link.timeout_ms"
        return f"{self._port_note}; the motor controller's own {other}"

    def poll(self, *, now_ns: int) -> LinkStatus:
        return self._link.poll(now_ns=now_ns)

    def transmit(self, set_point: SetPoint, *, now_ns: int) -> int | None:
        sent = self._link.send(set_point, now_ns=now_ns)
        return wire_time_ns(len(sent.frame), baud=self._baud) if sent is not None and sent.written else None

    def close(self) -> None:
        self._link.close()

    def _open_at_some_time(self) -> SerialPort | None:
        """At the start at once; later nobody waits for it, and no thread is made while the adapter is unplugged.

        One that has been unplugged again meanwhile is taken all the same: kept open, its name would not come back.
        """
        if self._at_start:
            return self._open()
        if not self._opening.under_way:
            find_port(self._path)
        return self._opening()

    def _open(self) -> SerialPort:
        port = SerialPort(path=self._path, baud=self._baud, name_holder=self._at_start)
        self._port_note = f"{port.path}, {port.latency}"
        return port


def command_wire_ns(config: Config) -> int:
    """How long one command's frame is on the line: a part of the budget."""
    return wire_time_ns(wire_codec(config).command_bytes, baud=config.link.baud)


def wire_problems(config: Config) -> list[str]:
    """What the codec cannot do for this plant, and whether its frames keep up with the tick; in words."""
    codec = wire_codec(config)
    return [*_unfit(config, codec), *_too_slow(config, codec)]


def wire_codec(config: Config) -> Codec:
    """The codec that the configuration names, for its axes; ``ConfigError`` names what is wrong with it."""
    link = config.link
    key = None if link.key_file is None else read_key(link.key_file)
    return make_codec(link.codec, axes=[axis.name for axis in config.axes], options=link.options, key=key)


def wire_expiry(config: Config) -> Expiry:
    """What ends a command that nobody renews."""
    return expiry_of(wire_codec(config), watchdog=config.link.watchdog)


def wire_guarantee(config: Config) -> str:
    """What the robot can rely on with this codec when its computer is dead, and how standstill is known; for people."""
    codec = wire_codec(config)
    said = guarantee(
        codec.carries,
        expiry=expiry_of(codec, watchdog=config.link.watchdog),
        timeout_ms=ms_from_ns(config.link.timeout_ns),
        note=codec.note,
    )
    rest_ms = ms_from_ns(rest_assumed_ns(config, wire_ns=wire_time_ns(codec.command_bytes, baud=config.link.baud)))
    return f"{said} {standstill_proof(config, feedback_of(codec), rest_assumed_ms=rest_ms)}"


def _unfit(config: Config, codec: Codec) -> Iterator[str]:
    """What the plant or its owner asks for and no frame can carry."""
    lacking = {Action.HOLD: Carries.HOLD, Action.TORQUE_OFF: Carries.TORQUE_OFF}
    for grade, action in config.guarding.actions.items():
        if action in lacking and lacking[action] not in codec.carries:
            yield (
                f"guard.actions.{grade.name.lower()}: the codec {codec.name} cannot carry {action.value}; use stop, or "
                "the codec cobs"
            )
    for axis in config.axes:
        if axis.safe is None and Carries.HOLD not in codec.carries:
            yield (
                f"axis {axis.name!r}: safe is 'hold', which the codec {codec.name} cannot carry; give it a safe value, "
                "or use the codec cobs"
            )
    if expiry_of(codec, watchdog=config.link.watchdog) == "none" and not config.link.accept_best_effort:
        yield (
            f"link.codec: with {codec.name} nothing stops the motor controller when this computer dies; if it has a "
            "watchdog of its own, set link.watchdog = true and link.timeout_ms to its time; else accept that with "
            "link.accept_best_effort = true"
        )


def _too_slow(config: Config, codec: Codec) -> Iterator[str]:
    """Whether a command, and its echo the other way, leave the line free for the next one a tick later."""
    baud, tick_ns = config.link.baud, config.timing.tick_ns
    longest, what = max((codec.command_bytes, "a command"), (codec.echo_bytes, "an echo"))
    takes_ns = wire_time_ns(longest, baud=baud)
    if takes_ns > tick_ns:
        needed = -(-longest * NS_PER_BYTE_AT_1_BAUD // tick_ns)
        enough = next((common for common in _COMMON_BAUDS if common >= needed), needed)
        yield (
            f"link.baud: {baud} is too slow: {what} of {longest} bytes needs {ms_from_ns(takes_ns):.1f} ms, a tick is "
            f"{ms_from_ns(tick_ns):g} ms; use {enough} baud or more, or a tick_ms of at least "
            f"{-(-takes_ns // NS_PER_MS)}"
        )
