"""One forward pass after another over one KV cache, with everything bound once and each pass timed.

A pass is ``k`` new tokens with ``p`` tokens cached. Where one of too few tokens would give other bits than the same
tokens among others (``Provider.smallest_pass``), the tokens just before are run again with it: they are overwritten by
themselves, and the answer does not depend on how its tokens were split into passes. The same goes for a token that
would be alone behind whole tiles of the kernels, and where passes have fixed sizes (``edgeguard.engine.shapes``).

``cancel`` may be called from another thread; everything else belongs to one. Durations are nanoseconds.
Raises ``CancelledPassError`` from a pass that was cancelled (its tokens are not in the cache), ``PromptError`` when the
cache is full, and whatever ONNX Runtime raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from numpy.typing import NDArray

from edgeguard.clock import Clock
from edgeguard.engine.cache import make_cache
from edgeguard.engine.folder import ModelFolder
from edgeguard.engine.head import Head
from edgeguard.engine.pass_io import DeviceIo, HostIo, PassIo
from edgeguard.engine.provider import Provider
from edgeguard.engine.session import runtime_errors
from edgeguard.engine.shapes import AnySize, FixedShapes, PassSizes, same_bits
from edgeguard.errors import EdgeguardError, PromptError
from edgeguard.types import Pass


class CancelledPassError(EdgeguardError):
    """The pass was cut short because nobody waits for it any more."""


class Engine:
    """``passes`` are those since ``begin``, and ``binding_ns`` what was spent on their inputs; ``cache`` says what
    is cached, ``head`` whose logits a pass returns.

    ``every_position``: ``earlier`` knows them for each of its tokens, with the same bits as if it were the last one.
    """

    def __init__(
        self,
        *,
        runtime: ModuleType,
        session: Any,
        folder: ModelFolder,
        head: Head,
        provider: Provider,
        capacity: int,
        clock: Clock,
        fixed: FixedShapes | None = None,
    ) -> None:
        self.cache = make_cache(
            runtime=runtime, session=session, folder=folder, provider=provider, capacity=capacity, fixed=fixed
        )
        self.head = head
        self.passes: list[Pass] = []
        self.binding_ns = 0
        self.every_position = head.every_position and same_bits(provider, folder)
        self._runtime, self._session, self._clock = runtime, session, clock
        self._sizes: PassSizes = fixed or AnySize(smallest=provider.smallest_pass, longest=provider.longest_pass)
        self._errors = runtime_errors()
        self._options = runtime.RunOptions()
        io = {"session": session, "names": folder.names, "rows": head.rows, "capacity": capacity}
        self._graph_key = provider.graph_key if provider.captures else None
        self._io: PassIo = (
            DeviceIo(runtime=runtime, device=provider.kv_device, **io) if provider.captures else HostIo(**io)
        )
        self._last = 0

    def begin(self) -> None:
        """A new request: forget the passes and the cancellation of the one before (``terminate`` latches)."""
        self.passes = []
        self.binding_ns = 0
        self._options = self._runtime.RunOptions()

    def cancel(self) -> None:
        """Cut the running pass short, and refuse the next ones until ``begin``. Takes effect between two operators."""
        self._options.terminate = True

    def prefill(self, tokens: Sequence[int]) -> None:
        """Make ``tokens`` what is cached, keeping what is there already."""
        self.cache.keep_common(tokens)
        self.run(tokens[len(self.cache) :])

    def run(self, tokens: Sequence[int], *, again: bool = True) -> NDArray[Any]:
        """Run the new ``tokens`` behind those cached, and return the logits (head.rows,) of the last one.

        The array is overwritten by the next pass. With ``again`` false a pass of one token is one.
        """
        if (whole := len(self.cache) + len(tokens)) > self.cache.capacity:
            raise PromptError(f"{whole} tokens do not fit the cache of {self.cache.capacity}")
        while tokens:
            count, repeated = len(tokens), 0
            if again:
                count, repeated = self._sizes.next_pass(count, cached=len(self.cache))
            start = len(self.cache) - repeated
            before = self.cache.tokens[start:]
            self.cache.rewind(start)
            self._pass([*before, *tokens[:count]])
            tokens = tokens[count:]
        return self.earlier(0)

    def _pass(self, tokens: Sequence[int]) -> None:
        k, p = len(tokens), len(self.cache)
        arrived_ns = self._clock.now_ns()
        self._io.bind(tokens, p=p, mask=self.cache.mask(k=k))
        if self._graph_key is not None:
            self._options.add_run_config_entry(self._graph_key, str(k))  # one graph for each size
        began_ns = self._clock.now_ns()
        self.binding_ns += began_ns - arrived_ns
        self.cache.bind(self._io.binding, k=k)
        try:
            self._session.run_with_iobinding(self._io.binding, self._options)
        except self._errors as error:
            if self._options.terminate:
                raise CancelledPassError(f"cancelled in a pass of {k} tokens behind {p}") from error
            raise
        self._io.fetch(k=k, p=p)
        self.cache.extend(tokens)
        self.passes.append(Pass(k=k, p=p, elapsed_ns=self._clock.now_ns() - began_ns))
        self._last = p + k - 1

    def earlier(self, back: int) -> NDArray[Any]:
        """The logits (head.rows,) behind the token of the latest ``run`` that has ``back`` tokens of it behind it."""
        return self._io.logits(self._last - back)
