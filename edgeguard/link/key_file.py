"""Reads the key that authenticates frames: 32 hexadecimal digits in a file that nobody else may read.

Fails with ``ConfigError`` that names the file and the command that mends it; the key itself is never in a message.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from edgeguard.errors import ConfigError
from edgeguard.link.siphash import KEY_BYTES

_DIGITS = 2 * KEY_BYTES
_LIMIT_BYTES = 100


def read_key(path: Path) -> bytes:
    """The ``KEY_BYTES`` bytes in ``path``."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            content = file.read(_LIMIT_BYTES)
    except OSError as error:
        make = f"(umask 077; head -c {KEY_BYTES} /dev/urandom | od -An -tx1 | tr -d ' \\n' > {path})"
        raise ConfigError(f"link.key_file: {path}: cannot be read ({error.strerror}); make one: {make}") from error
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(
            f"link.key_file: {path}: others may use it (mode {status.st_mode & 0o777:o}); chmod 600 {path}"
        )
    if status.st_uid not in (0, os.geteuid()):
        raise ConfigError(f"link.key_file: {path}: belongs to user {status.st_uid}, who could change it; chown it")
    try:
        key = bytes.fromhex(content.decode())
    except ValueError as error:
        raise ConfigError(f"link.key_file: {path}: must be {_DIGITS} hexadecimal digits") from error
    if len(key) != KEY_BYTES:
        raise ConfigError(f"link.key_file: {path}: {2 * len(key)} hexadecimal digits; it must have {_DIGITS}")
    return key
