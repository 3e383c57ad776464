"""Every failure a caller can tell apart, each with its exit code.

A message names the thing, the value and the way out; the command line prints it without a
traceback and leaves with ``exit_code``. The table in the README is generated from this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from edgeguard.extras import install_command


class EdgeguardError(Exception):
    """The root of all errors raised on purpose."""

    exit_code: ClassVar[int] = 1


class ConfigError(EdgeguardError):
    """The configuration cannot be used; ``problems`` lists everything that is wrong, not only the first."""

    exit_code = 2

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


class SchemaError(ConfigError):
    """The answer's schema is unbounded, unsupported or contradicts itself."""


class BusyError(EdgeguardError):
    """The machine is too busy to judge or to measure time."""

    exit_code = 3


class BoundError(EdgeguardError):
    """The measured bound does not fit the deadline; the message says which deadline would."""

    exit_code = 4


class ModelError(EdgeguardError):
    """The model folder is missing, damaged, or of a kind that this runtime does not run."""

    exit_code = 5


class TokenizerError(ModelError):
    """The tokenizer does not match the model, or cannot write the answer."""


class PromptError(ModelError):
    """The prompt does not fit the cache, or carries a control token from outside."""


class FetchError(ModelError):
    """A model's source cannot be fetched, or is not the pinned one."""


class ProviderError(EdgeguardError):
    """The execution provider asked for is not the one that would run."""

    exit_code = 6


class ProfileError(EdgeguardError):
    """There is no calibration profile, or it belongs to another model, board or setting."""

    exit_code = 7


class LinkError(EdgeguardError):
    """The serial port is missing, in use, or does not answer."""

    exit_code = 8


class AlreadyRunningError(EdgeguardError):
    """Another guard already owns this state directory or port."""

    exit_code = 9


class WorkerError(EdgeguardError):
    """The model's process cannot be started or does not become ready."""

    exit_code = 10


class ObservationError(EdgeguardError, ValueError):
    """An observation has a missing, non-finite or foreign value, or a stamp of another clock."""

    exit_code = 11


class MissingExtraError(EdgeguardError):
    """An optional package is not installed; the message names the extra that brings it."""

    exit_code = 12

    def __init__(self, *, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package {package!r}: {install_command(extra)}")


class AnswerError(EdgeguardError, ValueError):
    """An answer is not one that the schema allows; it is never applied."""

    exit_code = 13


class IncompleteAnswerError(AnswerError):
    """An answer lacks fields of the schema; there are no partial answers."""


class GuardGoneError(EdgeguardError):
    """The guard's process has ended or does not answer; the motor controller stops by time to live."""

    exit_code = 14


class FlightLogError(EdgeguardError):
    """The file is no flight log, or holds nothing that can be replayed."""

    exit_code = 15


class EndpointError(EdgeguardError):
    """The endpoint cannot be reached, refuses, or does not stream a completion."""

    exit_code = 16
