"""The weights of a GGUF file as a torch model, exactly: what is trained on is what will run.

Quantised blocks are expanded in float32 and no weight is quantised a second time. The modules carry Hugging Face's
names, so an adapter that PEFT saves names the layers as every other tool does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from edgeguard.model.gguf_source import GgufSource
from edgeguard.model.weights import Dense, Matrix

_IN_A_LAYER = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_NORMS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}


def base_model(path: Path, *, dtype: torch.dtype) -> LlamaForCausalLM:
    """The model in ``path``, frozen, its weights rounded to ``dtype`` (float32: not at all)."""
    source = GgufSource(path=path)
    hyper = source.hyper
    model = LlamaForCausalLM(
        LlamaConfig(
            attn_implementation="eager",  # the fused kernel's way back is four times dearer on a CPU
            vocab_size=hyper.vocabulary,
            hidden_size=hyper.hidden,
            intermediate_size=hyper.feed_forward,
            num_hidden_layers=hyper.layers,
            num_attention_heads=hyper.heads,
            num_key_value_heads=hyper.kv_heads,
            head_dim=hyper.head_size,
            max_position_embeddings=hyper.context,
            rms_norm_eps=hyper.norm_epsilon,
            rope_parameters={"rope_type": "default", "rope_theta": hyper.rope_base},
            tie_word_embeddings=source.tied,
            bos_token_id=source.tokenizer.bos,
            eos_token_id=source.tokenizer.eos,
        )
    )
    state = {"model.embed_tokens.weight": expanded(source.matrix("token_embd"))}
    state["lm_head.weight"] = state["model.embed_tokens.weight"] if source.tied else expanded(source.matrix("output"))
    state["model.norm.weight"] = torch.from_numpy(source.vector("output_norm").copy())
    for layer in range(hyper.layers):
        for ours, theirs in _IN_A_LAYER.items():
            state[f"model.layers.{layer}.{ours}.weight"] = expanded(source.matrix(f"blk.{layer}.{theirs}"))
        for ours, theirs in _NORMS.items():
            gain = source.vector(f"blk.{layer}.{theirs}")
            state[f"model.layers.{layer}.{ours}.weight"] = torch.from_numpy(gain.copy())
    model.load_state_dict(state)
    return model.to(dtype).eval().requires_grad_(False)


def expanded(matrix: Matrix) -> torch.Tensor:
    """Float32 (N, K); see ``edgeguard.model.weights`` for the formula."""
    if isinstance(matrix, Dense):
        return torch.from_numpy(matrix.values.astype(np.float32))
    packed = matrix.packed
    if matrix.bits == 4:
        packed = np.stack([packed & 0x0F, packed >> 4], axis=-1).reshape(*packed.shape[:2], -1)
    blocks = (packed.astype(np.float32) - 2 ** (matrix.bits - 1)) * matrix.scales[..., None]
    if matrix.carry is not None:
        blocks += matrix.carry[..., None]
    return torch.from_numpy(blocks.reshape(matrix.shape))
