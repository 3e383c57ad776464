"""An execution provider as a row of a table: everything that a new one costs.

A row says which package brings it, what the engine has to know about it and which graph it can run. What no row says is
the same for all: explicit choice, no fallback, one KV cache bound once. Opens nothing and imports nothing slow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

HEAVY_OPERATORS = frozenset({
    "Attention", "Conv", "Gemm", "GroupQueryAttention", "LayerNormalization", "MatMul", "MatMulInteger", "MatMulNBits",
    "MultiHeadAttention", "QLinearMatMul", "RotaryEmbedding", "SimplifiedLayerNormalization",
    "SkipSimplifiedLayerNormalization", "Softmax",
})  # fmt: skip
"""Where the time of a pass goes. One of these elsewhere than on the provider asked for is a silent fallback; what is
left (shapes, lengths, a Gather of ids) may live on the CPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The graph that a provider can run: its element type, its attention, and how its weights are stored.

    ``embedding`` is how the table of tokens is: as the weights are, or as floats of this type.
    """

    activations: str = "float32"
    attention: str = "GroupQueryAttention"
    weights: str = "MatMulNBits"
    embedding: str = ""

    def __str__(self) -> str:
        attention = "plain attention" if self.attention == "plain" else self.attention
        return f"{self.activations}, {attention}, {self.weights} weights"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What the provider compiles a graph to, and how it is told where to keep that.

    ``directory_option`` is the provider's own option for a folder; without one, the session's EPContext keys are used.
    """

    what: str
    directory_option: str | None = None
    switches: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One row.

    ``hardware`` is what it is for, in words of people who buy it. ``package`` is what ``pip`` installs (for a
    Python of at least ``python``), ``extra`` ours that asks for it, ``plugin`` the module of a provider that comes
    as a library beside ONNX Runtime (None: built into the runtime of ``package``), ``build_flag`` what ONNX Runtime
    has to be built with where no package has it, ``library`` its file where it is given by hand. ``options`` are
    for low jitter and each has its reason in the table; ``option_names`` are all that it knows (empty: not known to
    us, then what it does not report back is refused). ``threads_option`` is its own name for the threads of a pass.
    ``kv_types`` are the element types that its attention takes for the cache. ``smallest_pass`` is the fewest new
    tokens for which a pass gives the same bits as one that computes them among others; ``same_bits`` says that from
    there on they do. ``longest_pass`` is the most tokens of a pass, whole tiles of them: more are run in several,
    because the memory of a pass stays with the process, and that of attention grows with its square. ``warm_sizes``
    is how many sizes of the first pass are warmed up, evenly spaced: kernels may be chosen or compiled by size.
    ``shapes`` says whether passes may have ``any`` size, a few fixed ``sizes``, or ``one`` that is frozen into the
    graph (``edgeguard.engine.shapes``). ``range_options`` are its own names for the smallest, the usual and the largest
    shapes that what it compiles is to serve, ``graph_option`` that for capturing passes as graphs on the device,
    ``graph_key`` what a run's options call which graph it is, and ``captures`` says that it is on
    (``edgeguard.engine.pass_io``).
    ``device_files`` are patterns of which one exists where there is hardware, ``driver`` is the command that shows or
    brings its driver. ``cuda`` says that it needs CUDA's libraries, which may be packages of Python; ``bundled`` are
    patterns of libraries in its plugin's folder that the loader does not find there by itself. ``hint`` is what keeps
    its clock steady. ``verified`` says where it was run.
    """

    name: str
    ort_name: str
    package: str
    extra: str
    hardware: str = ""
    build_flag: str = ""
    python: tuple[int, int] = (3, 10)
    plugin: str | None = None
    library: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    option_names: tuple[str, ...] = ()
    threads_option: str | None = None
    kv_device: str = "cpu"
    kv_types: tuple[str, ...] = ("tensor(float)", "tensor(float16)")
    smallest_pass: int = 1
    longest_pass: int = 256
    same_bits: bool = False
    warm_sizes: int = 16
    shapes: str = "any"
    range_options: tuple[str, ...] = ()
    graph_option: str | None = None
    graph_key: str = "gpu_graph_id"
    captures: bool = False
    compiled: Compiled | None = None
    heavy_operators: frozenset[str] = HEAVY_OPERATORS
    graph: Graph = Graph()
    device_files: tuple[str, ...] = ()
    driver: str = ""
    cuda: bool = False
    bundled: tuple[str, ...] = ()
    hint: str = ""
    verified: str = ""

    @property
    def stops_inside(self) -> bool:
        """Whether a running pass can be cut short. ONNX Runtime looks whether it is to end between two operators, and
        what a provider has compiled, or captured, is one."""
        return self.compiled is None and not self.captures

    @property
    def passes(self) -> str:
        """What its passes are like, in words."""
        bits = "bit-identical however they are split, so there are drafts" if self.same_bits else "without drafts"
        return f"{bits}; {'cut short inside' if self.stops_inside else 'run to their end'} when they are late"
