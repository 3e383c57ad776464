"""The same folder loads and answers in onnxruntime-genai, and gives the tokens that plain onnxruntime gives."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from tests.graph_runner import run_graph
from tests.real import real_model
from tests.tiny import tiny_model

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_genai") is None, reason="onnxruntime-genai is not installed"
)

# In a process of its own: it loads its own onnxruntime, and checks for leaks when the interpreter ends.
SCRIPT = """
import json, sys
import onnxruntime_genai as genai
folder, prompt, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
model = genai.Model(folder)
tokenizer = genai.Tokenizer(model)
ids = tokenizer.encode(prompt)
parameters = genai.GeneratorParams(model)
parameters.set_search_options(max_length=len(ids) + count)
generator = genai.Generator(model, parameters)
generator.append_tokens(ids)
answer = []
while not generator.is_done():
    generator.generate_next_token()
    answer.append(int(generator.get_next_tokens()[0]))
chat = tokenizer.apply_chat_template('[{"role": "user", "content": "hi"}]', add_generation_prompt=True)
print(json.dumps({"ids": [int(i) for i in ids], "answer": answer, "text": tokenizer.decode(answer), "chat": chat}))
"""


def test_the_tiny_model_answers_as_in_onnxruntime(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path, accuracy_level=0)
    prompt = "<|im_start|>the robot turns 12"
    said = generate(folder, prompt, count=8)
    assert said["ids"] == Tokenizer.from_file(str(folder / "tokenizer.json")).encode(prompt).ids
    assert said["answer"] == greedy(folder, said["ids"], count=len(said["answer"]))
    assert said["chat"].endswith("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n")


@pytest.mark.model
def test_the_real_model_answers() -> None:
    prompt = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
    folder = real_model()
    said = generate(folder, prompt, count=20)
    assert said["ids"] == Tokenizer.from_file(str(folder / "tokenizer.json")).encode(prompt).ids
    assert "Paris" in said["text"]


def generate(folder: Path, prompt: str, *, count: int) -> dict[str, Any]:
    command = [sys.executable, "-c", SCRIPT, str(folder), prompt, str(count)]
    environment = {**os.environ, "ORT_DISABLE_TELEMETRY": "1"}
    done = subprocess.run(command, capture_output=True, check=True, env=environment, text=True)
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def greedy(folder: Path, prompt: list[int], *, count: int) -> list[int]:
    answer: list[int] = []
    for _ in range(count):
        answer.append(int(run_graph(folder, prompt, *([token] for token in answer))[-1].argmax()))
    return answer
