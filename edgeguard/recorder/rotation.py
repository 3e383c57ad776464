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


def flight_files(*logs: Path) -> list[Path]:
    """The files that are named, or are a named folder's flight log; those of one log together, oldest first.

    However they are named: a shell puts ``flight.log`` before the ``flight.log.1`` that came before it.
    ``FlightLogError`` for a folder that has none.
    """
    files = dict.fromkeys(file for log in logs for file in (_of_folder(log) if log.is_dir() else [log]))
    logs_of = list(dict.fromkeys(_newest(file) for file in files))
    return sorted(files, key=lambda file: (logs_of.index(_newest(file)), -_rotations(file)))


def _of_folder(folder: Path) -> list[Path]:
    newest = folder / FLIGHT_LOG
    files = [one for _, one in _numbered(newest)] + [newest] * newest.is_file()
    if not files:
        raise FlightLogError(f"{folder}: holds no {FLIGHT_LOG}; name a flight log, or the state directory of a guard")
    return files


def _numbered(file: Path) -> Iterator[tuple[int, Path]]:
    """What was put aside, with the number of rotations since."""
    for one in file.parent.glob(f"{file.name}.*"):
        if number := _rotations(one):
            yield number, one


def _rotations(file: Path) -> int:
    """How often it has been put aside; 0 for the newest, which has no number."""
    return int(file.suffix[1:]) if file.suffix[1:].isdecimal() else 0


def _newest(file: Path) -> Path:
    """The log that the file belongs to."""
    return file.with_suffix("") if _rotations(file) else file


def _rotated(file: Path, number: int) -> Path:
    return file.with_name(f"{file.name}.{number}")
