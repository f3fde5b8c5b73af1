"""A GGUF file's own vocabulary as a tokenizer of the `tokenizers` library.

Two kinds: "gpt2" is byte-level BPE with its list of merges, after a pre-tokenizer that the file names;
"llama" is SentencePiece, where of all neighbours those are joined first whose word has the highest score, and
bytes stand for what no word writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from .chat import ChatTemplate
from .tokenizer import Tokenizer

# What a token is, of `tokenizer.ggml.token_type`.
CONTROL, USER_DEFINED = 3, 4

#: How words, numbers and spaces are cut apart before merging: GPT-2's way, and those of later models.
_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED = rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+"
_CASED_TOO = rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
_SLASHES = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = rf"{_CONTRACTIONS}|{_WORDS}|\p{{N}}{{1,3}}|{_REST}"
QWEN2 = rf"{_CONTRACTIONS}|{_WORDS}|\p{{N}}|{_REST}"
TEKKEN = rf"{_CASED}|{_CASED_TOO}|\p{{N}}|{_SLASHES}"
GPT4O = rf"{_CASED}{_CONTRACTIONS}?|{_CASED_TOO}{_CONTRACTIONS}?|\p{{N}}{{1,3}}|{_SLASHES}"
#: GPT-2's own, which the library has built in; with every digit alone before.
GPT2, DIGITS = "gpt2", "digits"

#: `tokenizer.ggml.pre` → how.
PRE_TOKENIZERS = {
    **dict.fromkeys(("default", "gpt-2", "gpt2", "phi-2", "mpt", "olmo", "jais", "trillion"), GPT2),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell", "minerva-7b"), DIGITS),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "falcon3", "smaug-bpe", "dbrx"), LLAMA3),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "megrez"), QWEN2),
    "tekken": TEKKEN,
    **dict.fromkeys(("gpt-4o", "llama4"), GPT4O),
}
#: Those that take a word of the vocabulary as it is, though no merges lead to it, and put BOS in front.
WHOLE_WORDS = {"llama-bpe", "llama3", "llama-v3", "falcon3", "tekken"}

#: Tokens that end a turn, by the names they have, where a file does not number them.
ENDS = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "<｜end▁of▁sentence｜>",
}


def tokenizer_of(metadata: Mapping[str, Any]) -> Tokenizer | None:
    """The tokenizer of a file's metadata, or None where it has none. ValueError says what is wrong."""
    kind = metadata.get("tokenizer.ggml.model")
    if kind in (None, "none", "no_vocab"):
        return None
    tokens = metadata.get("tokenizer.ggml.tokens")
    if not _are(tokens, str):
        raise ValueError("the vocabulary of the GGUF file (tokenizer.ggml.tokens) is not a list of strings")
    if kind == "gpt2":
        inner = _byte_level(tokens, metadata)
    elif kind == "llama":
        inner = _sentence_piece(tokens, metadata)
    else:
        raise NotImplementedError(
            f"vocabularies of kind {kind!r} in GGUF files are not supported, only gpt2 and llama"
        )
    types = _line("token_type", metadata, len(tokens), int) or [1] * len(tokens)
    _add_special(inner, tokens, types)
    bos, eos = (_number(metadata, f"{name}_token_id", len(tokens)) for name in ("bos", "eos"))
    ends = [_number(metadata, f"{name}_token_id", len(tokens)) for name in ("eos", "eot", "eom")]
    numbered = [each for each in ends if each is not None]
    named = [i for i, text in enumerate(tokens) if text in ENDS and types[i] in (CONTROL, USER_DEFINED)]
    by_kind = kind == "llama" or metadata.get("tokenizer.ggml.pre") in WHOLE_WORDS
    add_bos = bool(metadata.get("tokenizer.ggml.add_bos_token", by_kind))
    texts = {f"{name}_token": "" if i is None else tokens[i] for name, i in (("bos", bos), ("eos", eos))}
    source = metadata.get("tokenizer.chat_template")
    template = ChatTemplate(source, texts) if isinstance(source, str) else None
    return Tokenizer(inner, numbered + named, bos, add_bos, template)


def _number(metadata: Mapping[str, Any], name: str, count: int) -> int | None:
    """The number of a special token, if the file says one."""
    found = metadata.get(f"tokenizer.ggml.{name}")
    if found is None or (isinstance(found, int) and not 0 <= found < count):
        return None
    if not isinstance(found, int) or isinstance(found, bool):
        raise ValueError(f"tokenizer.ggml.{name} must be the number of a token, not {found!r}")
    return found


def _are(found: Any, kind: type) -> TypeGuard[list[Any]]:
    """Whether it is a list of values of one type; a list of a file has 100,000s."""
    return isinstance(found, list) and set(map(type, found)) <= {kind}


def _line(name: str, metadata: Mapping[str, Any], count: int, kind: type) -> list[Any] | None:
    """A list with a number for each token."""
    found = metadata.get(f"tokenizer.ggml.{name}")
    if found is None:
        return None
    if not _are(found, kind) or len(found) != count:
        raise ValueError(f"tokenizer.ggml.{name} has no {kind.__name__} for each of the {count} tokens")
    return found


def _byte_level(tokens: list[str], metadata: Mapping[str, Any]) -> Any:
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers

    merges = metadata.get("tokenizer.ggml.merges")
    if not _are(merges, str):
        raise ValueError("the merges of the GGUF file (tokenizer.ggml.merges) are no list of texts")
    name = metadata.get("tokenizer.ggml.pre", "default")
    if name not in PRE_TOKENIZERS:
        raise NotImplementedError(
            f"pre-tokenizer {name!r} of a GGUF file is not supported, only {', '.join(PRE_TOKENIZERS)}"
        )
    pairs = _pairs(merges)
    vocabulary = dict(zip(tokens, range(len(tokens)), strict=True))
    try:
        model = models.BPE(vocabulary, pairs, ignore_merges=name in WHOLE_WORDS)
    except Exception as error:  # the library raises Exception itself
        raise ValueError(f"the merges of the GGUF file do not fit its vocabulary: {error}") from error
    inner = tokenizers.Tokenizer(model)
    how = PRE_TOKENIZERS[name]
    if how in (GPT2, DIGITS):
        steps: list[Any] = [pre_tokenizers.Digits(individual_digits=True)] if how == DIGITS else []
        steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True))
    else:
        steps = [
            pre_tokenizers.Split(tokenizers.Regex(how), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    inner.pre_tokenizer = pre_tokenizers.Sequence(steps)
    inner.decoder = decoders.ByteLevel()
    return inner


def _pairs(merges: list[str]) -> list[tuple[str, str]]:
    """The two parts of each merge, with a space between: bytes are written as letters, so none holds one."""
    pairs: list[Any] = [tuple(merge.split(" ", 1)) for merge in merges]
    if not set(map(len, pairs)) <= {2} or not all(map(all, pairs)):
        wrong = next(m for m, pair in zip(merges, pairs, strict=True) if len(pair) < 2 or not all(pair))
        raise ValueError(f"{wrong!r} is not a merge of two tokens (tokenizer.ggml.merges)")
    return pairs


def _sentence_piece(tokens: list[str], metadata: Mapping[str, Any]) -> Any:
    import tokenizers
    from tokenizers import decoders, models, normalizers

    scores = _line("scores", metadata, len(tokens), float)
    if scores is None:
        raise ValueError("the vocabulary of the GGUF file has no tokenizer.ggml.scores")
    vocabulary = {text: i for i, text in enumerate(tokens)}
    unknown = _number(metadata, "unknown_token_id", len(tokens))
    model = models.BPE(
        vocabulary,
        _merges(vocabulary, scores),
        unk_token=None if unknown is None else tokens[unknown],
        fuse_unk=True,
        byte_fallback=True,
    )
    inner = tokenizers.Tokenizer(model)
    space = bool(metadata.get("tokenizer.ggml.add_space_prefix", True))
    front = [normalizers.Prepend("▁")] if space else []
    inner.normalizer = normalizers.Sequence([*front, normalizers.Replace(" ", "▁")])
    back = [decoders.Strip(" ", 1, 0)] if space else []
    inner.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *back]
    )
    return inner


def _merges(vocabulary: dict[str, int], scores: list[float]) -> list[tuple[str, str]]:
    """Every way to make a word of two, the word with the highest score first."""
    found = []
    for text, number in vocabulary.items():
        for cut in range(1, len(text)):
            first, second = text[:cut], text[cut:]
            if first in vocabulary and second in vocabulary:
                found.append((-scores[number], vocabulary[first], vocabulary[second], first, second))
    found.sort()
    return [(first, second) for *_, first, second in found]


def _add_special(inner: Any, tokens: list[str], types: list[int]) -> None:
    """Tokens that are found in a text before it is cut: control tokens, and those that were added."""
    from tokenizers import AddedToken

    for kind, special in ((CONTROL, True), (USER_DEFINED, False)):
        texts = [text for text, each in zip(tokens, types, strict=True) if each == kind and text]
        inner.add_tokens([AddedToken(text, special=special, normalized=False) for text in texts])
