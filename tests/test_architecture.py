"""The shape of the house: the layers, and what the guard's process may know."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

_PROBE = """
import json, re, sys
import edgeguard, edgeguard.service.service
edgeguard.Guard, edgeguard.LoopGuard
print(json.dumps({
    "modules": sorted({name.split(".")[0] for name in sys.modules}),
    "peak_mb": int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024,
}))
"""


def test_the_guards_process_knows_neither_the_model_nor_numpy_and_stays_small():
    done = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, check=True, cwd=ROOT)
    seen = json.loads(done.stdout)
    heavy = {"numpy", "onnxruntime", "tokenizers", "onnx", "gguf", "rich", "huggingface_hub", "psutil", "jinja2"}
    assert not heavy & set(seen["modules"])
    assert seen["peak_mb"] < 40


def test_importing_the_package_imports_nothing_else():
    code = "import sys; import edgeguard; print([name for name in sys.modules if name.startswith('edgeguard.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
