"""onnxruntime-genai in its own process: one generator that is rewound to what the last request has in common.

The guidance is llguidance's regular expression; a rewind starts it anew. The loop ends with the closing brace: the pass
that would choose the end of the turn is not made.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from peers.child import Answering, serve

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
NGRAM, DRAFT_TOKENS = 2, 16


def load(request: dict[str, Any]) -> tuple[str, Answering]:
    import onnxruntime_genai as genai

    config = genai.Config(request["folder"])
    session_options = {"intra_op_num_threads": request["threads"]}
    config.overlay(json.dumps({"model": {"decoder": {"session_options": session_options}}}))
    config.clear_providers()
    if request["provider"] != "cpu":
        config.append_provider(request["provider"])
    model = genai.Model(config)
    tokenizer = genai.Tokenizer(model)
    params = genai.GeneratorParams(model)
    params.set_search_options(do_sample=False, max_length=request["capacity"])
    params.set_guidance("regex", request["regex"], request["fast_forward"])
    if request["ngram"]:
        params.set_speculative_options(ngram_size=NGRAM, max_draft_tokens=DRAFT_TOKENS)
    generator = genai.Generator(model, params)
    prefix = [int(token) for token in tokenizer.encode(request["prefix"])]
    generator.append_tokens(prefix)
    cached = list(prefix)

    def answer(text: str) -> dict[str, Any]:
        nonlocal cached
        tokens = prefix + [int(token) for token in tokenizer.encode(text)]
        common = 0
        while common < min(len(cached), len(tokens) - 1) and cached[common] == tokens[common]:
            common += 1
        generator.rewind_to(common)
        generator.append_tokens(tokens[common:])
        cached, first_ns, made = tokens, 0, ""
        while not made.endswith("}"):
            generator.generate_next_token()
            first_ns = first_ns or time.monotonic_ns()
            made = tokenizer.decode(generator.get_sequence(0)[len(tokens) :])
        return {"text": made, "first_ns": first_ns}

    for _ in range(request["warm_up"]):
        answer(request["example"])
    ways = ["guidance (regex)"]
    ways += ["fast-forward tokens"] if request["fast_forward"] else []
    ways += [f"n-gram {NGRAM}, {DRAFT_TOKENS} draft tokens"] if request["ngram"] else []
    ways += ["rewind_to the common prefix", f"{request['threads']} threads"]
    return f"onnxruntime-genai {genai.__version__} on {request['provider']}: {', '.join(ways)}", answer


if __name__ == "__main__":
    serve(load)
