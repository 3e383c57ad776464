"""Options that must be above 0, each where it is used: all that are not are named at once."""

from __future__ import annotations

import argparse

from edgeguard.errors import ConfigError


def require_positive(arguments: argparse.Namespace, *names: str) -> None:
    """``ConfigError`` that names every option that must be above 0 and is not."""
    problems = [
        f"--{name.replace('_', '-')} {getattr(arguments, name):g}: must be above 0"
        for name in names
        if not getattr(arguments, name) > 0
    ]
    if problems:
        raise ConfigError(problems)
