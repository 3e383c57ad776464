"""The wire: frames, the serial port, and the guard's end of the link. The controller's simulator is not imported here.

Layer 3: knows types, errors, options of the configuration and time as it is handed in; nothing of the model, the rules
or the board.
"""

from edgeguard.link.carried import Carries, guarantee
from edgeguard.link.codec import CODECS, Codec, expiry_of, feedback_of, make_codec
from edgeguard.link.link import Link
from edgeguard.link.port import SerialPort

__all__ = ["CODECS", "Carries", "Codec", "Link", "SerialPort", "expiry_of", "feedback_of", "guarantee", "make_codec"]
