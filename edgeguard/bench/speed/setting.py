"""What ``edgeguard tune`` tries: how a pass is run on the CPU, without changing a bit of its result.

A *knob* is one thing with a few positions: the number of threads, whether they spin, where they are pinned, how a
piece of work is cut among them. ``written`` puts a setting into the text of a configuration and leaves every comment
and every other key as it is. Opens nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from edgeguard.config import Config

if TYPE_CHECKING:
    from tomlkit.items import Item, Table

ALLOW_SPINNING = "session.intra_op.allow_spinning"
SPINNING_STOP = "session.force_spinning_stop"
AFFINITIES = "session.intra_op_thread_affinities"
BLOCK_BASE = "session.dynamic_block_base"
KNOBS = ("threads", "spinning", "affinity", "block base")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Keys of ``[model]``: ``threads`` (0: every core) and ``session_options``, and both in words."""

    threads: int
    session_options: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        threads = f"{self.threads or 'all'} thread{'' if self.threads == 1 else 's'}"
        return ", ".join([threads, *(f"{key} {value}" for key, value in sorted(self.session_options.items()))])


def configured(config: Config) -> Setting:
    return Setting(threads=config.model.threads, session_options=dict(config.model.session_options))


def alternatives(knob: str, setting: Setting, *, processors: Sequence[int]) -> list[Setting]:
    """The other positions of a knob. ``processors`` are the numbers of those that the process may use."""
    threads = setting.threads or len(processors)
    if knob == "threads":
        cores = len(processors)
        counts = sorted({1, cores // 2, cores - 1, cores} - {0, threads})
        unpinned = {key: value for key, value in setting.session_options.items() if key != AFFINITIES}
        return [Setting(threads=count, session_options=unpinned) for count in counts]
    options: dict[str, Sequence[Mapping[str, str]]] = {
        "spinning": [{ALLOW_SPINNING: "0"}, {SPINNING_STOP: "0"}],
        "affinity": [{AFFINITIES: _pinned(processors[:threads])}] if 1 < threads <= len(processors) else [],
        "block base": [{BLOCK_BASE: base} for base in ("0", "2", "8")],
    }
    others = [replace(setting, session_options={**setting.session_options, **option}) for option in options[knob]]
    return [other for other in others if other != setting]


def _pinned(processors: Sequence[int]) -> str:
    """One processor for each thread but the first, which is the caller's and stays free; ONNX Runtime counts from 1."""
    return ";".join(str(processor + 1) for processor in processors[1:])


def written(text: str, setting: Setting, *, before: Setting) -> str:
    """The text of a configuration that said ``before``, saying ``setting``."""
    import tomlkit

    if setting == before:
        return text
    document = tomlkit.parse(text)
    model: Any = document.setdefault("model", tomlkit.table())
    if setting.threads != before.threads:
        model["threads"] = setting.threads
    if setting.session_options != before.session_options:
        behind = _taken_from_the_end(model) if "session_options" not in model else []
        options = model.setdefault("session_options", tomlkit.inline_table())
        for key in before.session_options.keys() - setting.session_options.keys():
            del options[key]
        for key, value in setting.session_options.items():
            options[key] = value
        for item in behind:
            model.add(item)
    return tomlkit.dumps(document)


def _taken_from_the_end(table: Table) -> list[Item]:
    """The comments and empty lines behind the last key: they belong to what follows, not to a key that is added."""
    taken: list[Item] = []
    body = table.value.body
    while body and body[-1][0] is None:
        taken.insert(0, body.pop()[1])
    return taken
