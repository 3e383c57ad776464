"""Files to be written, as a command line names them: what cannot be is refused before the work, not after it."""

from __future__ import annotations

import argparse
from pathlib import Path

PICTURES = (".png", ".svg", ".pdf")


def file_to_write(text: str) -> Path:
    """Any name but a folder's."""
    file = Path(text)
    if file.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a folder: name a file in it")
    return file


def picture_to_write(text: str) -> Path:
    """A name whose ending is one of ``PICTURES``, in a folder that is there."""
    file = file_to_write(text)
    if file.suffix.lower() not in PICTURES:
        raise argparse.ArgumentTypeError(f"{text} is no picture: name a file that ends in {', '.join(PICTURES)}")
    if not file.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: there is no folder {file.parent}")
    return file
