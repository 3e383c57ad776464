"""The two layouts of a model folder, and what each says of the graph in it: names, sizes, end tokens, kind of cache.

*genai*: onnxruntime-genai's, ``genai_config.json`` says everything. *hub*: Optimum's and onnx-community's,
``config.json`` says the sizes, the graph itself the names; its file is the only one of the folder (or of its folder
``onnx``), or the one that the configuration points at. Sizes are in tokens and elements.

Raises ``ModelError`` naming the file and the key, also for models that are no decoder with a cache.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edgeguard.engine.graph_file import GraphFile, read_graph_file
from edgeguard.engine.json_file import BUILD_AGAIN, JsonFile
from edgeguard.errors import ModelError

GENAI_CONFIG = "genai_config.json"
HUB_CONFIG = "config.json"

CONSTANTS: Mapping[str, object] = {
    "use_cache_branch": [True],  # of a merged decoder: the branch that reads a past, which may be empty
    "num_logits_to_keep": 0,  # all of them
}
"""Inputs that some exporters add, and the one value that a decoder with a cache gives them."""

_CACHE_NAME = re.compile(r"^(?P<head>(?:past|present)\D*)(?P<layer>\d+)(?P<tail>\D*(?:key|value)\D*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What the graph calls its inputs and outputs; those of the cache have ``%d`` for the layer."""

    input_ids: str
    attention_mask: str
    logits: str
    past: tuple[str, str]
    present: tuple[str, str]
    position_ids: str | None = None
    constants: Mapping[str, object] = field(default_factory=dict)

    def cache(self, *, layers: int) -> list[tuple[str, str]]:
        """(past, present) of every layer's keys and values."""
        pairs = list(zip(self.past, self.present, strict=True))
        return [(past % layer, present % layer) for layer in range(layers) for past, present in pairs]

    @property
    def inputs(self) -> set[str]:
        """All that is no cache."""
        positions = {self.position_ids} if self.position_ids is not None else set()
        return {self.input_ids, self.attention_mask, *positions, *self.constants}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a folder's own files say. ``shared_cache``: past and present are one buffer; else the cache grows.

    ``custom_ops_library`` is code that the model asks for (``edgeguard.engine.custom_ops``).
    """

    config: Path
    graph: GraphFile
    names: Names
    layers: int
    kv_heads: int
    head_size: int
    vocabulary: int
    context: int
    end_tokens: tuple[int, ...]
    shared_cache: bool
    custom_ops_library: str | None = None


def read_layout(path: Path) -> Layout:
    """Of the folder at ``path``, or of the one that the ONNX file at ``path`` belongs to."""
    file = path if path.is_file() else None
    folder = path if file is None else file.parent
    if not folder.is_dir():
        raise ModelError(f"{path}: there is no model folder; make one with 'edgeguard model build'")
    if folder.name == "onnx" and not any((folder / name).is_file() for name in (GENAI_CONFIG, HUB_CONFIG)):
        folder = folder.parent
    if (folder / GENAI_CONFIG).is_file():
        return _read_genai(folder, file)
    if (folder / HUB_CONFIG).is_file():
        return _read_hub(folder, file)
    raise ModelError(
        f"{folder}: has neither {GENAI_CONFIG} nor {HUB_CONFIG}, so it is no model folder; make one with "
        "'edgeguard model build'"
    )


def _read_genai(folder: Path, file: Path | None) -> Layout:
    config = JsonFile.read(folder / GENAI_CONFIG)
    decoder = "model.decoder"
    for part in ("encoder", "vision", "speech"):
        if part in config.get("model", dict):
            raise ModelError(f"{config.file}: model.{part}: only models that are nothing but a decoder run here")
    filename = config.get(f"{decoder}.filename", str)
    if Path(filename).name != filename:
        raise ModelError(f"{config.file}: {decoder}.filename is {filename!r}, not a file beside it; {BUILD_AGAIN}")
    if file is not None and file.name != filename:
        raise ModelError(f"{file}: {config.file.name} beside it is that of {filename}; point at that, or at the folder")
    graph = read_graph_file(folder / filename)
    inputs, outputs = config.get(f"{decoder}.inputs", dict), f"{decoder}.outputs"
    return Layout(
        config=config.file,
        graph=graph,
        names=_checked(
            config.file,
            Names(
                input_ids=config.get(f"{decoder}.inputs.input_ids", str),
                attention_mask=config.get(f"{decoder}.inputs.attention_mask", str),
                position_ids=inputs.get("position_ids"),
                logits=config.get(f"{outputs}.logits", str),
                past=_pair(config, f"{decoder}.inputs", "past"),
                present=_pair(config, outputs, "present"),
                constants=_constants(graph),
            ),
        ),
        layers=config.size(f"{decoder}.num_hidden_layers"),
        kv_heads=config.size(f"{decoder}.num_key_value_heads"),
        head_size=config.size(f"{decoder}.head_size"),
        vocabulary=config.size("model.vocab_size"),
        context=config.size("model.context_length"),
        end_tokens=config.tokens("model.eos_token_id"),
        shared_cache=config.get("search.past_present_share_buffer", bool),
        custom_ops_library=config.get(decoder, dict).get("session_options", {}).get("custom_ops_library"),
    )


def _pair(config: JsonFile, place: str, kind: str) -> tuple[str, str]:
    return config.get(f"{place}.{kind}_key_names", str), config.get(f"{place}.{kind}_value_names", str)


def _checked(file: Path, names: Names) -> Names:
    for name in (*names.past, *names.present):
        if name.count("%") != 1 or "%d" not in name:
            raise ModelError(f"{file}: {name!r} has no place %d for the layer; {BUILD_AGAIN}")
    return names


def _read_hub(folder: Path, file: Path | None) -> Layout:
    config = JsonFile.read(folder / HUB_CONFIG)
    if config.content.get("is_encoder_decoder") is True:
        raise ModelError(
            f"{config.file}: is an encoder with a decoder; only models that are nothing but a decoder run here"
        )
    graph = read_graph_file(file or _only_graph(folder))
    generation = folder / "generation_config.json"
    ends = JsonFile.read(generation) if generation.is_file() else config
    heads = config.size("num_attention_heads")
    return Layout(
        config=config.file,
        graph=graph,
        names=_discovered(graph),
        layers=config.size("num_hidden_layers"),
        kv_heads=config.size("num_key_value_heads", default=heads),
        head_size=config.size("head_dim", default=config.size("hidden_size") // heads),
        vocabulary=config.size("vocab_size"),
        context=config.size("max_position_embeddings"),
        end_tokens=(ends if "eos_token_id" in ends.content else config).tokens("eos_token_id"),
        shared_cache=False,
    )


def _only_graph(folder: Path) -> Path:
    found = sorted([*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")])
    if len(found) == 1:
        return found[0]
    if not found:
        raise ModelError(f"{folder}: has no *.onnx file; export it with its cache (task text-generation-with-past)")
    names = ", ".join(str(file.relative_to(folder)) for file in found)
    raise ModelError(f"{folder}: has several graphs ({names}); let model.folder point at one of them")


def _discovered(graph: GraphFile) -> Names:
    known = {"input_ids", "attention_mask", "position_ids", *CONSTANTS}
    if any("encoder" in name for name in graph.inputs):
        raise ModelError(
            f"{graph.path}: takes an encoder's output; only models that are nothing but a decoder run here"
        )
    past = _patterns(graph.inputs, "past")
    present = _patterns(graph.outputs, "present")
    if past is None or present is None:
        raise ModelError(
            f"{graph.path}: has no cache of keys and values among its inputs and outputs; export it with one (task "
            "text-generation-with-past)"
        )
    strange = [name for name in graph.inputs if name not in known and not _CACHE_NAME.match(name)]
    missing = {"input_ids", "attention_mask"} - set(graph.inputs)
    if strange or missing:
        listed = ", ".join([*(f"{name} unknown" for name in strange), *(f"{name} missing" for name in sorted(missing))])
        raise ModelError(f"{graph.path}: its inputs are not a decoder's: {listed}")
    return Names(
        input_ids="input_ids",
        attention_mask="attention_mask",
        position_ids="position_ids" if "position_ids" in graph.inputs else None,
        logits="logits",
        past=past,
        present=present,
        constants=_constants(graph),
    )


def _constants(graph: GraphFile) -> dict[str, object]:
    return {name: value for name, value in CONSTANTS.items() if name in graph.inputs}


def _patterns(names: Sequence[str], start: str) -> tuple[str, str] | None:
    """The names of keys and of values with ``%d`` for the layer, or None."""
    found: dict[str, str] = {}
    for match in filter(None, map(_CACHE_NAME.match, names)):
        if match["head"].startswith(start):
            kind = "key" if "key" in match["tail"] else "value"
            found.setdefault(kind, f"{match['head']}%d{match['tail']}")
    return (found["key"], found["value"]) if len(found) == 2 else None
