"""The board under the model: what it is, how hot it is, and whether it is free."""

from edgeguard.board.board import Board, find_board
from edgeguard.board.fingerprint import UNKNOWN, read_fingerprint
from edgeguard.board.kernel import FixedKernel
from edgeguard.board.level import LevelWatch
from edgeguard.board.reading import Kind, Reading, Sensor, Value
from edgeguard.board.thermometer import Thermometer

__all__ = [
    "UNKNOWN",
    "Board",
    "FixedKernel",
    "Kind",
    "LevelWatch",
    "Reading",
    "Sensor",
    "Thermometer",
    "Value",
    "find_board",
    "read_fingerprint",
]
