"""openvino-genai in its own process: it reads the GGUF file itself, caches prefixes, and constrains with XGrammar."""

from __future__ import annotations

import time
from typing import Any

from peers.child import Answering, serve

CACHE_GB = 1
MOST_TOKENS = 64


def load(request: dict[str, Any]) -> tuple[str, Answering]:
    import openvino_genai as genai

    scheduler = genai.SchedulerConfig()
    scheduler.enable_prefix_caching = True
    scheduler.cache_size = CACHE_GB
    pipeline = genai.LLMPipeline(
        request["gguf"], "CPU", scheduler_config=scheduler, INFERENCE_NUM_THREADS=request["threads"]
    )
    config = genai.GenerationConfig()
    config.max_new_tokens = MOST_TOKENS
    config.do_sample = False
    config.apply_chat_template = False
    config.stop_strings = {"}"}
    config.include_stop_str_in_output = True
    config.structured_output_config = genai.StructuredOutputConfig(regex=request["regex"])

    def answer(text: str) -> dict[str, Any]:
        began_ns = time.monotonic_ns()
        result = pipeline.generate([request["prefix"] + text], config)
        return {"text": result.texts[0], "first_ns": began_ns + round(result.perf_metrics.get_ttft().mean * 1e6)}

    for _ in range(request["warm_up"]):
        answer(request["example"])
    ways = f"structured output (regex), prefix caching, {request['threads']} threads"
    return f"openvino-genai {genai.__version__.partition('-')[0]}: the GGUF file, {ways}", answer


if __name__ == "__main__":
    serve(load)
