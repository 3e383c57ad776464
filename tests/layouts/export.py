"""Makes ``tests/layouts/models``: one tiny llama in every layout that other tools export, each by that tool itself.

Run once, in environments of their own, because the two want different transformers:
``pip install torch==2.13.0 optimum-onnx onnxruntime`` and ``python tests/layouts/export.py optimum``;
``pip install torch==2.13.0 onnxruntime onnxruntime-genai onnx-ir 'transformers>=5'`` and the same with ``genai``.
``pip install torch==2.13.0 optimum==1.20.0 transformers==4.41.2 onnx-ir onnxruntime`` and ``merged``, when ``optimum``
is made: versions that still export a decoder merged of two branches, as thousands of published folders have it.
Weights are random but seeded, so all folders answer alike; ``*.json`` beside them hold what a tool's own runtime says
behind a prompt: the greedy tokens, and the first logits.
"""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import onnx
import torch
from onnx.external_data_helper import set_external_data
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from onnxruntime.transformers.float16 import convert_float_to_float16
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

MODELS = Path(__file__).parent / "models"
CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CORPUS = (
    "the robot turns left and right, forward and back; stop when the range is short.",
    '{"action": "forward", "speed": 0.4, "turn": -0.25, "reason": "clear"}',
    "user system assistant operator says: go slowly to the door, then wait 10 seconds 1 2 3 4 5 6 7 8 9 0",
)
PROMPT = "go slowly to the door"
NEW_TOKENS = 8
SMALLEST_SHARED_BYTES = 1024


def source(folder: Path) -> None:
    """The model as ``transformers`` keeps it, and its tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=list(CONTROL), initial_alphabet=alphabet)
    tokenizer.train_from_iterator(CORPUS, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", chat_template=CHAT_TEMPLATE)
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(fast),
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=2,
        initializer_range=0.3,
    )
    LlamaForCausalLM(config).eval().save_pretrained(folder)


def said_by(model: Any, folder: Path) -> dict[str, Any]:
    """By a model of ``transformers``' interface."""
    ids = torch.tensor([Tokenizer.from_file(str(folder / "tokenizer.json")).encode(PROMPT).ids])
    logits = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, -1]
    said = model.generate(
        input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW_TOKENS, do_sample=False, eos_token_id=-1
    )
    new = said[0, ids.shape[1] :].tolist()
    return {"prompt": ids[0].tolist(), "tokens": new, "logits": [round(float(one), 5) for one in logits]}


def optimum_layouts(folder: Path) -> None:
    """Optimum's ``model.onnx``, and onnx-community's smaller files made of it as its script makes them.

    That is ``scripts/quantize.py`` of transformers.js, but for its last step: onnxslim 0.1.98 leaves types out of a
    float16 graph that ONNX Runtime then refuses.
    """
    from optimum.exporters.onnx import main_export
    from optimum.onnxruntime import ORTModelForCausalLM

    made = MODELS / "optimum"
    main_export(str(folder), output=made, task="text-generation-with-past", no_post_process=True)
    said = said_by(ORTModelForCausalLM.from_pretrained(made, file_name="model.onnx"), made)
    (MODELS / "optimum.json").write_text(json.dumps(said))
    whole = onnx.load(made / "model.onnx")
    onnx.save(convert_float_to_float16(whole), made / "model_fp16.onnx")
    quantizer = MatMulNBitsQuantizer(onnx.load(made / "model.onnx"), block_size=32, is_symmetric=True)
    quantizer.process()
    onnx.save(quantizer.model.model, made / "model_q4.onnx")
    four_bits, mixed = quantizer.model.model, made / "model_q4f16.onnx"
    onnx.save(convert_float_to_float16(four_bits, keep_io_types=True), mixed)
    said = said_by(ORTModelForCausalLM.from_pretrained(made, file_name=mixed.name), made)
    (MODELS / "q4f16.json").write_text(json.dumps(said))
    quantize_dynamic(made / "model.onnx", made / "model_quantized.onnx", weight_type=QuantType.QInt8)


def merged_layout(folder: Path) -> None:
    """Optimum's older ``decoder_model_merged.onnx``; its weights are those of ``model.onnx``, and are read from there.

    That file is beside it and holds the same bytes, so that they need not be stored a second time.
    """
    from optimum.exporters.onnx import main_export
    from optimum.onnxruntime import ORTModelForCausalLM

    torch.onnx.export = functools.partial(torch.onnx.export, dynamo=False)  # what was the default at its time
    made, store = folder / "merged", MODELS / "optimum" / "model.onnx"
    main_export(str(folder), output=made, task="text-generation-with-past", legacy=True)
    said = said_by(
        ORTModelForCausalLM.from_pretrained(made, use_cache=True, use_merged=True, use_io_binding=False), made
    )
    (MODELS / "merged.json").write_text(json.dumps(said))
    merged, stored = onnx.load(made / "decoder_model_merged.onnx"), store.read_bytes()
    for tensor in merged.graph.initializer:
        weights = onnx.numpy_helper.to_array(tensor).tobytes()
        if len(weights) >= SMALLEST_SHARED_BYTES:
            set_external_data(tensor, store.name, offset=stored.index(weights), length=len(weights))
            tensor.ClearField("raw_data")
    (store.parent / "decoder_model_merged.onnx").write_bytes(merged.SerializeToString())


def genai_layouts(folder: Path) -> None:
    """GroupQueryAttention with a shared buffer: QKV in one product or three, in float32, float16 and int4.

    The graph for DirectML has its rotary embedding outside of the attention, and so an input ``position_ids``.
    """
    variants: dict[str, tuple[str, str, list[str]]] = {
        "genai": ("fp32", "cpu", []),
        "genai_int4": ("int4", "cpu", ["int4_block_size=32", "int4_accuracy_level=4"]),
        "genai_separate": ("fp32", "cpu", ["disable_qkv_fusion=true"]),
        "genai_fp16": ("fp16", "cuda", []),
        "genai_positions": ("fp16", "dml", []),
    }
    for name, (precision, provider, options) in variants.items():
        with tempfile.TemporaryDirectory() as cache:
            argv = [
                sys.executable,
                "-m",
                "onnxruntime_genai.models.builder",
                "-i",
                str(folder),
                "-o",
                str(MODELS / name),
            ]
            argv += ["-p", precision, "-e", provider, "-c", cache]
            argv += ["--extra_options", *options] if options else []
            subprocess.run(argv, check=True)


def main() -> None:
    """The layouts of one tool, from nothing."""
    make = {"optimum": optimum_layouts, "genai": genai_layouts, "merged": merged_layout}[sys.argv[1]]
    for old in MODELS.glob(f"{sys.argv[1]}*/"):
        shutil.rmtree(old)
    MODELS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        source(Path(scratch))
        said = said_by(LlamaForCausalLM.from_pretrained(scratch), Path(scratch))
        (MODELS / "transformers.json").write_text(json.dumps(said))
        make(Path(scratch))


if __name__ == "__main__":
    main()
