"""The sections of the configuration, as data; those of the plant are ``plant_sections``.

Nanoseconds and SI units inside; the file's units are in its keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from edgeguard.config.plant_sections import Axis, FieldSpec, Interlock, Rule
from edgeguard.types import Action, Grade, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """``[timing]``. ``reserve_ns`` is ``None`` when it is to be measured at the start."""

    tick_ns: int
    period_ns: int
    deadline_ns: int
    life_ns: int
    max_age_ns: int
    observation_timeout_ns: int
    reserve_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomOps:
    """One library of ``model.custom_ops``."""

    library: Path
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """``[model]``: a recipe's name or a folder; ``threads`` 0 means every core the process may use. ``shapes`` of
    passes are those that the provider wants (None), or as said here.
    """

    folder: str
    adapter: str | None  # a name or a path, built into the recipe's model
    provider: str
    threads: int
    provider_options: Mapping[str, str]
    session_options: Mapping[str, str]
    shapes: str | None = None
    custom_ops: tuple[CustomOps, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnProvider:
    """``[[provider]]``: an execution provider that the built-in table does not have, in a library of its own.

    ``ort_name`` is what its library calls it; the other fields are those of a row (``edgeguard.engine.provider``).
    """

    name: str
    ort_name: str
    library: Path
    kv_device: str
    smallest_pass: int
    same_bits: bool
    compiles: bool
    activations: str
    attention: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One few-shot pair of ``[[prompt.example]]``."""

    observation: Mapping[str, Value]
    answer: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """``[prompt]``: ``user`` is a template with ``{field}`` places; everything else is the fixed prefix."""

    system: str
    user: str
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """``[[plan]]``: one rung of the ladder, complete: what it does not say itself is as in the other sections."""

    name: str
    model: Model
    prompt: Prompt
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarding:
    """``[guard]``: how misses add up, when the guard re-arms, what each grade asks of the plant."""

    on_time_to_arm: int
    dwell_ns: int
    miss_limit: float
    refill_per_on_time: float
    hung_after_ns: int
    start_limit_ns: int
    worker_failures: int
    actions: Mapping[Grade, Action]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """``[link]``: the serial port, and what the motor controller does without us.

    ``options`` is the codec's own table ``[link.CODEC]``, which it reads itself.
    """

    port: str
    baud: int
    codec: str
    options: Mapping[str, Any]
    watchdog: bool  # of the motor controller: without a life in each frame it stops after ``timeout_ns`` of silence
    accept_best_effort: bool  # that nothing stops it when the guard is dead
    key_file: Path | None
    timeout_ns: int
    echo_timeout_ns: int
    controller_latency_ns: int
    controller_decel: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """``[budget]``: what the user accepts."""

    max_miss_rate: float
    confidence: float
    uncalibrated_factor: float | None  # at a thermal level without a bound: so much longer than the worst known


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """``[record]``: what the flight log may take on the disk."""

    files: int
    file_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """``[metrics]``: where the recorder publishes them, if anywhere."""

    textfile: Path | None
    http_port: int | None  # on the loopback interface only

    @property
    def wanted(self) -> bool:
        return self.textfile is not None or self.http_port is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The whole file. ``schema`` is the answer's JSON Schema as read, with exact decimals.

    ``min_confidence``: how sure the model must be of an answer, if that matters. ``plans`` are those of the file.
    """

    file: Path
    digest: str
    timing: Timing
    model: Model
    providers: tuple[OwnProvider, ...]
    prompt: Prompt
    schema: Mapping[str, Any]
    min_confidence: float | None
    fields: tuple[FieldSpec, ...]
    axes: tuple[Axis, ...]
    rules: tuple[Rule, ...]
    interlocks: tuple[Interlock, ...]
    guarding: Guarding
    link: Link
    risk: Risk
    recording: Recording
    metrics: Metrics
    state_directory: Path | None
    plans: tuple[Rung, ...] = ()

    @property
    def rungs(self) -> tuple[Rung, ...]:
        """The ladder, from best to cheapest; without plans one unnamed rung."""
        return self.plans or (Rung(name="", model=self.model, prompt=self.prompt, schema=self.schema),)

    @property
    def by_model(self) -> tuple[Config, ...]:
        """One for each model of the ladder, in its order: with that one in ``model``, and the plans that ask it."""
        models: list[Model] = []
        for rung in self.rungs:
            if rung.model not in models:
                models.append(rung.model)
        return tuple(
            replace(self, model=model, plans=tuple(rung for rung in self.plans if rung.model == model))
            for model in models
        )

    def field(self, name: str) -> FieldSpec | None:
        return next((spec for spec in self.fields if spec.name == name), None)
