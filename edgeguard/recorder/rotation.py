"""The files of a flight log: ``flight.log`` is being written, ``flight.log.1`` came before it, and so on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from edgeguard.errors import FlightLogError

FLIGHT_LOG = "flight.log"


def rotate(file: Path, *, limit_bytes: int, files: int) -> bool:
    """Put ``file`` aside if it is full, so that at most ``files`` are there with the next; whether it was.

    A disk that fails is no error here: the writer meets it too, and counts what it loses.
    """
    try:
        if file.stat().st_size < limit_bytes:
            return False
        for number, one in sorted(_numbered(file), reverse=True):
            if number >= files - 1:
                one.unlink()
            else:
                one.replace(_rotated(file, number + 1))
        file.replace(_rotated(file, 1))
    except OSError:
        return False
    return True


def flight_files(log: Path) -> list[Path]:
    """``log`` alone, or the files of a folder's flight log, oldest first; ``FlightLogError`` when it has none."""
    if not log.is_dir():
        return [log]
    newest = log / FLIGHT_LOG
    files = [one for _, one in sorted(_numbered(newest), reverse=True)] + [newest] * newest.is_file()
    if not files:
        raise FlightLogError(f"{log}: holds no {FLIGHT_LOG}; name a flight log, or the state directory of a guard")
    return files


def _numbered(file: Path) -> Iterator[tuple[int, Path]]:
    """What was put aside, with the number of rotations since."""
    for one in file.parent.glob(f"{file.name}.*"):
        if one.suffix[1:].isdecimal():
            yield int(one.suffix[1:]), one


def _rotated(file: Path, number: int) -> Path:
    return file.with_name(f"{file.name}.{number}")
