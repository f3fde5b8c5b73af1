"""`python -m lazygrad llm MODEL`: a chat with a language model, one answer of it, or a server for it."""

from __future__ import annotations

import argparse
import math
import os
import sys
from typing import Any

from ..models import LanguageModel, Sampling, load
from ..models.rounding import ACTIVATIONS
from ..models.sharding import device_list, shard
from ..serving.app import Limits
from ..serving.served import ServedModel
from ..serving.server import Server, warn_of_openness
from .chat import Chat, converse
from .model_files import PACKAGES, find_model, none_given
from .words import positive

HELP = "chat with a language model, or serve it with an OpenAI-compatible API"

#: How the terminal chooses tokens unless told: likely ones, not always the likeliest.
TEMPERATURE, TOP_P = 0.7, 0.95
#: Where a key for the server may stand: what is typed behind a command others can see.
KEY = "LAZYGRAD_API_KEY"


def arguments(parser: argparse.ArgumentParser) -> None:
    names = " or ".join(PACKAGES)
    parser.add_argument(
        "model",
        nargs="?",
        help=f"a .gguf file, a Hugging Face folder, or the name of a packaged model: {names}",
    )
    parser.add_argument("--device", help="the device to run on, for example CPU or CLANG")
    parser.add_argument("--dtype", help="dtype of the weights that are not quantised, for example bfloat16")
    parser.add_argument(
        "--activations",
        default="float32",
        choices=ACTIVATIONS,
        help="int8 rounds the inputs of quantised layers: faster and less exact (default float32)",
    )
    parser.add_argument("--shard", type=positive, metavar="N", help="split the weights over N devices")
    parser.add_argument(
        "--context",
        type=positive,
        help="length of the context window: the maximum number of tokens of a conversation or request",
    )

    chat = parser.add_argument_group("chat")
    chat.add_argument(
        "--prompt", metavar="TEXT", help="answer this prompt and exit; - reads the prompt from stdin"
    )
    chat.add_argument(
        "--raw", action="store_true", help="continue the prompt as it is, without the chat template"
    )
    chat.add_argument("--system", metavar="TEXT", help="the system prompt")
    chat.add_argument("--stats", action="store_true", help="print tokens per second after each answer")

    how = parser.add_argument_group(
        "sampling",
        f"Chat defaults: --temperature {TEMPERATURE} --top-p {TOP_P}. A server obeys each request.",
    )
    how.add_argument(
        "--temperature", type=number, help="divides the logits; 0 always takes the most likely token"
    )
    how.add_argument("--top-k", type=positive, help="sample from this many of the most likely tokens")
    how.add_argument(
        "--top-p", type=number, help="sample from the most likely tokens whose probabilities add up to this"
    )
    how.add_argument(
        "--min-p", type=number, help="leave out tokens less likely than this fraction of the most likely one"
    )
    how.add_argument(
        "--repetition-penalty", type=number, help="above 1 makes tokens that occurred before less likely"
    )
    how.add_argument("--max-tokens", type=positive, help="the maximum number of tokens in an answer")
    how.add_argument("--seed", type=int, help="the same seed gives the same answer")

    server = parser.add_argument_group("server")
    server.add_argument(
        "--serve", action="store_true", help="serve an OpenAI-compatible API over HTTP until Ctrl-C"
    )
    server.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default 127.0.0.1, which only this machine can reach)",
    )
    server.add_argument(
        "--port", type=port, default=8000, help="port to listen on; 0 takes a free one (default 8000)"
    )
    server.add_argument("--name", help="the name of the model in the API")
    server.add_argument(
        "--slots", type=positive, default=4, help="how many requests are computed together (default 4)"
    )
    server.add_argument(
        "--queue", type=positive, default=32, help="how many more requests may wait (default 32)"
    )
    server.add_argument(
        "--api-key",
        help=f"key that clients must send; safer in the variable {KEY}, which other users cannot see",
    )
    server.add_argument(
        "--grace",
        type=number,
        default=10.0,
        help="seconds that running answers may take after Ctrl-C (default 10)",
    )


def number(text: str) -> float:
    """A finite number."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return found


def port(text: str) -> int:
    """A number of a port."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, a number from 0 to 65535")
    return int(text)


def run(given: argparse.Namespace) -> int:
    if given.model is None:
        print(f"lazygrad llm: {none_given()}", file=sys.stderr)
        return 2
    try:
        sampling = _settings(given)
        Sampling(**sampling)  # what makes no sense is said before the model is loaded
        model = _load(given)
        return _serve(model, given, sampling) if given.serve else _chat(model, given, sampling)
    except BrokenPipeError:  # whoever read has what he wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (OSError, ValueError, NotImplementedError) as error:
        print(f"lazygrad llm: {error}", file=sys.stderr)
        return 1


def _settings(given: argparse.Namespace) -> dict[str, Any]:
    """What was said of how tokens are chosen."""
    names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed")
    return {name: getattr(given, name) for name in names if getattr(given, name) is not None}


def _load(given: argparse.Namespace) -> LanguageModel:
    model = load(find_model(given.model), given.device, given.dtype, given.activations)
    if given.shard is None or given.shard == 1:
        return model
    return shard(model, device_list(given.device, given.shard))


def _chat(model: LanguageModel, given: argparse.Namespace, sampling: dict[str, Any]) -> int:
    chosen = Sampling(**{"temperature": TEMPERATURE, "top_p": TOP_P, **sampling})
    chat = Chat(model, given.system, chosen, given.max_tokens, given.context, given.stats)
    if given.prompt is None:
        if given.raw:
            raise ValueError("--raw is for --prompt: a conversation needs the model's chat template")
        converse(chat)
        return 0
    text = sys.stdin.read() if given.prompt == "-" else given.prompt
    if not text.strip():
        raise ValueError("the prompt is empty")
    whole = chat.write(chat.tokenizer.encode(text)) if given.raw else chat.ask(text)
    return 0 if whole else 130


def _serve(model: LanguageModel, given: argparse.Namespace, sampling: dict[str, Any]) -> int:
    name = given.name or (given.model if given.model in PACKAGES else model.name)
    key = given.api_key or os.environ.get(KEY) or None
    served = ServedModel(model, name, given.slots, given.context, sampling)
    limits = Limits(tokens=given.max_tokens)
    server = Server(served, given.host, given.port, given.slots, given.queue, key, limits, given.grace)
    warn_of_openness(given.host, key)
    print(f"{name} is served at {server.url}, {given.slots} answers at once; Ctrl-C ends", flush=True)
    server.run()
    return 0
