"""The files of a flight log: ``flight.log`` is being written, ``flight.log.1`` came before it, and so on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from edgeguard.errors import FlightLogError

FLIGHT_LOG = "flight.log"


def rotate(file: Path, *, limit_bytes: int, files: int) -> str | None:
    """Put ``file`` aside if it is full, so that at most ``files`` are there with the next; why it cannot be, if so.

    It then goes on growing, and whatever was put aside before stays where it is: those behind the first free number
    are not touched.
    """
    try:
        if not file.exists() or file.stat().st_size < limit_bytes:
            return None
        for number, one in _numbered(file):
            if number >= files:
                one.unlink()
        numbers = range(1, files)
        free = next((number for number in numbers if not _rotated(file, number).exists()), files - 1)
        for number in range(free - 1, 0, -1):
            _rotated(file, number).replace(_rotated(file, number + 1))
        file.replace(_rotated(file, 1))
    except OSError as error:
        where = error.filename2 or error.filename
        return f"{file}: cannot be put aside and grows beyond its limit ({error.strerror}: {where})"
    return None


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
