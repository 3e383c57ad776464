"""The board under the model: what it is, and whether it is free. Standard library only."""

from edgeguard.board.fingerprint import UNKNOWN, read_fingerprint
from edgeguard.board.kernel import FixedKernel

__all__ = ["UNKNOWN", "FixedKernel", "read_fingerprint"]
