"""Trains a low-rank adapter (LoRA) of a recipe's model on cases in the evaluation file's format; saves it as PEFT does.

    python models/training/train.py --config robot.toml --data train.jsonl --dev dev.jsonl --out models/adapters/NAME

The base stays the file's weights. The loss is the cross-entropy of the answer's choices among the tokens that are
allowed there, which is what the runtime's decoder does; the shared prefix is run once a batch. Seeded: the same data,
seed and machine give the same adapter, another machine one that differs in rounding. A thousand steps of 16 take a
quarter of an hour on two CPU cores with bfloat16; it uses a GPU if torch sees one.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from base import base_model
from examples import Example, Examples
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
from peft.helpers import disable_input_dtype_casting
from safetensors.torch import load_file, save_file
from torch.nn.functional import cross_entropy
from transformers import DynamicCache

from edgeguard.bench.subject import model_folder
from edgeguard.config import load_config
from edgeguard.model.build import default_cache_dir
from edgeguard.model.fetch import fetch
from edgeguard.model.progress import silent
from edgeguard.model.recipe import find

TARGETS = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")
"""Two inputs a layer, the attention's and the feed-forward's: each input with an adapter costs every pass a product."""

RANK, ALPHA = 8, 16
RISE, FALL = 50, 0.4
"""The learning rate rises in so many steps, stays, and falls to nothing, as a line, in the last share of them."""

BUCKET = 16
"""Batches are cut from so many batches' examples sorted by length, so that little is padding."""


class Student:
    """The base with an adapter in it, and the logits of the answer's alphabet."""

    def __init__(
        self,
        *,
        recipe: str,
        gguf: Path,
        examples: Examples,
        first_layer: int,
        device: str,
        dtype: torch.dtype,
        resume: Path | None,
    ) -> None:
        self._recipe, self._dtype = recipe, dtype
        base = base_model(gguf, dtype=dtype).to(device)
        layers = list(range(first_layer, base.config.num_hidden_layers))
        lora = LoraConfig(
            r=RANK, lora_alpha=ALPHA, target_modules=list(TARGETS), layers_to_transform=layers, task_type="CAUSAL_LM"
        )
        self.adapted = get_peft_model(base, lora, autocast_adapter_dtype=True)
        if resume is not None:
            set_peft_model_state_dict(self.adapted, load_file(resume / WEIGHTS))
        self._body = self.adapted.base_model.model.model
        self._device = device
        self._prefix = torch.tensor([examples.prefix], device=device)
        self._alphabet = examples.alphabet
        self._columns = {token: at for at, token in enumerate(examples.alphabet)}
        self._head = base.lm_head.weight[list(examples.alphabet)].float()

    def logits(self, batch: Sequence[Example]) -> tuple[torch.Tensor, torch.Tensor]:
        """Per choice of the batch: logits of the alphabet (what is not allowed is -inf), and the right column."""
        longest = max(len(example.tokens) for example in batch)
        # Padding stands behind every choice, so nothing that counts attends to it.
        padded = [[*example.tokens, *[0] * (longest - len(example.tokens))] for example in batch]
        ids = torch.tensor(padded, device=self._device)
        cache = DynamicCache()
        # The adapter's own weights stay float32; its products are computed as the base's are.
        cast = torch.autocast(self._device, dtype=torch.bfloat16, enabled=self._dtype is torch.bfloat16)
        with disable_input_dtype_casting(self.adapted), cast:
            self._body(self._prefix, past_key_values=cache, use_cache=True)
            cache.batch_repeat_interleave(len(batch))
            hidden = self._body(ids, past_key_values=cache, use_cache=True).last_hidden_state
        choices = [(row, choice) for row, example in enumerate(batch) for choice in example.choices]
        rows, before = [row for row, _ in choices], [choice.at - 1 for _, choice in choices]
        logits = hidden[rows, before].float() @ self._head.T
        forbidden = torch.full_like(logits, -math.inf)
        for at, (_, choice) in enumerate(choices):
            forbidden[at, [self._columns[token] for token in choice.allowed]] = 0
        right = torch.tensor([self._columns[choice.right] for _, choice in choices], device=self._device)
        return logits + forbidden, right

    @torch.no_grad()
    def accuracy(self, examples: Sequence[Example], *, batch: int = 64) -> list[float]:
        """Share of accepted choices, by their place in the answer (the earlier ones given)."""
        hits: dict[int, list[bool]] = {}
        for start in range(0, len(examples), batch):
            part = examples[start : start + batch]
            logits, _ = self.logits(part)
            asked = [(place, choice) for example in part for place, choice in enumerate(example.choices)]
            for (place, choice), column in zip(asked, logits.argmax(1).tolist(), strict=True):
                hits.setdefault(place, []).append(self._alphabet[column] in choice.accepted)
        return [sum(hits[place]) / len(hits[place]) for place in sorted(hits)]

    def save(self, folder: Path) -> None:
        """PEFT's layout, in float16."""
        folder.mkdir(parents=True, exist_ok=True)
        state = get_peft_model_state_dict(self.adapted)
        save_file({name: one.to(torch.float16).contiguous() for name, one in state.items()}, folder / WEIGHTS)
        settings = self.adapted.peft_config["default"].to_dict()
        settings |= {"inference_mode": True, "base_model_name_or_path": self._recipe}
        text = json.dumps(settings, indent=2, sort_keys=True, default=sorted)
        (folder / "adapter_config.json").write_text(f"{text}\n")


WEIGHTS = "adapter_model.safetensors"


def batches(examples: Sequence[Example], *, size: int, seed: int) -> Iterator[list[Example]]:
    """Endless, epoch after epoch, each in another order."""
    draw = random.Random(seed)
    while True:
        order = draw.sample(examples, len(examples))
        for start in range(0, len(order), size * BUCKET):
            bucket = sorted(order[start : start + size * BUCKET], key=lambda example: len(example.tokens))
            parts = [bucket[at : at + size] for at in range(0, len(bucket), size)]
            yield from draw.sample(parts, len(parts))


def train(student: Student, *, data: Sequence[Example], dev: Sequence[Example], args: argparse.Namespace) -> None:
    parameters = [one for one in student.adapted.parameters() if one.requires_grad]
    optimiser = torch.optim.AdamW(parameters, lr=args.rate, weight_decay=0.0)
    steps = math.ceil(args.epochs * len(data) / args.batch)
    began, losses = time.monotonic(), []
    for step, batch in zip(range(1, steps + 1), batches(data, size=args.batch, seed=args.seed), strict=False):
        optimiser.param_groups[0]["lr"] = args.rate * min(1, step / RISE, (steps - step + 1) / (FALL * steps))
        loss = cross_entropy(*student.logits(batch))
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        losses.append(loss.item())
        if step % args.report == 0 or step == steps:
            recent = losses[-args.report :]
            right = " ".join(f"{one:.3f}" for one in student.accuracy(dev)) if dev else "-"
            elapsed = time.monotonic() - began
            print(
                f"step {step}/{steps}  loss {sum(recent) / len(recent):.3f}  dev {right}  {elapsed:.0f} s", flush=True
            )
            student.save(args.out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, required=True, help="the robot's configuration; its model is a recipe")
    parser.add_argument("--data", type=Path, required=True, help="cases to train on, JSON Lines")
    parser.add_argument("--dev", type=Path, help="cases to look at during training")
    parser.add_argument("--out", type=Path, required=True, help="the adapter's folder")
    parser.add_argument("--resume", type=Path, help="an adapter to start from")
    parser.add_argument("--epochs", type=float, default=1)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument(
        "--precision",
        choices=("bfloat16", "float32"),
        default="bfloat16",
        help="of the base's products: float32 is quicker where the CPU has no bfloat16",
    )
    parser.add_argument("--threads", type=int, default=0, help="0: every core")
    parser.add_argument("--first-layer", type=int, default=0, help="those below stay as they are, which is cheaper")
    parser.add_argument("--report", type=int, default=100, help="steps between two looks at --dev, each saves")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    if args.threads:
        torch.set_num_threads(args.threads)
    config = load_config(args.config)
    examples = Examples(config=config, folder=model_folder(config))
    with tempfile.TemporaryDirectory() as scratch:
        source = find(config.model.folder).source
        gguf = fetch(source, downloads=default_cache_dir() / "downloads", scratch=Path(scratch), progress=silent)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        dtype = getattr(torch, args.precision)
        student = Student(
            recipe=config.model.folder,
            gguf=gguf,
            examples=examples,
            first_layer=args.first_layer,
            device=device,
            dtype=dtype,
            resume=args.resume,
        )
    data, dev = examples.read(args.data), examples.read(args.dev) if args.dev else []
    print(f"{len(data)} cases, prefix {len(examples.prefix)} tokens, alphabet {len(examples.alphabet)}", flush=True)
    train(student, data=data, dev=dev, args=args)


if __name__ == "__main__":
    main()
