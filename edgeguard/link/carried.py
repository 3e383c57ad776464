"""What a protocol can carry, and the guarantee that follows from it, in words. Knows no bytes and no codec."""

from __future__ import annotations

from enum import Flag, auto

from edgeguard.types.wire import Expiry


class Carries(Flag):
    """What a codec's frames say beside the axes, and what comes back. A codec names what it has; the rest it lacks."""

    SESSION = auto()  # a handshake, and numbers by which an old or a foreign frame is known
    LIFE = auto()  # in every command, how long it holds
    HOLD = auto()  # "stay where you are", beside following the axes
    TORQUE_OFF = auto()
    ECHO = auto()  # which command was taken, what is measured, whether it moves
    MEASURED = auto()  # what the axes do, and no more
    CHECK = auto()  # damage on the line is found
    KEY = auto()  # frames of whoever has not the key are not obeyed


_LACKING = {
    Carries.SESSION: "session and sequence (a frame that was held back on the way is obeyed when it comes)",
    Carries.LIFE: "a command's life",
    Carries.HOLD: "hold",
    Carries.TORQUE_OFF: "torque off",
    Carries.CHECK: "a check sum (a damaged digit is taken at its word)",
}


def guarantee(carries: Carries, *, expiry: Expiry, timeout_ms: float, note: str = "") -> str:
    """What a robot can rely on when its computer is dead, and what no frame of this protocol carries."""
    said = [_EXPIRIES[expiry].format(timeout_ms=timeout_ms)]
    lacking = [words for one, words in _LACKING.items() if one not in carries]
    if Carries.ECHO not in carries:
        measured = Carries.MEASURED in carries
        lacking.append("an echo of what was taken" if measured else "any echo: whether it listens is not known")
    if lacking:
        said.append(f"This protocol cannot carry {', '.join(lacking)}.")
    return " ".join([*said, note] if note else said)


_EXPIRIES: dict[Expiry, str] = {
    "per_frame": (
        "Each command carries its own life; when that or the link time-out is over, the motor controller stops by "
        "itself, whatever became of this computer."
    ),
    "silence": (
        "The motor controller's own watchdog stops it {timeout_ms:g} ms after the last command, whatever became of "
        "this computer; until then it obeys that command. A life that ends is ended by a stop that the guard sends."
    ),
    "none": (
        "Best effort: nothing stops the motor controller when this computer or its cable fails. A life that ends is "
        "ended by a stop that the guard sends, if it still can."
    ),
}
