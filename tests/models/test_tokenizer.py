"""Tokens and texts: streams, vocabularies of GGUF files beside the libraries they were made for."""

from __future__ import annotations

import pytest

from lazygrad.models.gguf_vocabulary import PRE_TOKENIZERS, tokenizer_of
from lazygrad.models.tokenizer import Tokenizer
from lazygrad.nn.formats import read_gguf
from tests.helpers import needs, require
from tests.models import tiny_decoder as tiny

pytestmark = needs("tokenizers")

TEXTS = [
    "",
    "hello",
    " a  b",
    "tab\tand\nlines\n\n\n",
    "12345 x1y2",
    "naïve café",
    "日本語",
    "🙂🙃 ok",
    "don't WON'T",
]


def byte_alphabet() -> list[str]:
    """A letter for each byte, as GPT-2 writes them."""
    from tokenizers import pre_tokenizers

    return sorted(pre_tokenizers.ByteLevel.alphabet())


def byte_level(pre: str = "gpt-2", **more: object) -> dict[str, object]:
    """A GGUF vocabulary of all bytes and some merges."""
    merges = ["h e", "l l", "he ll", "hell o", "Ġ a", "1 2", "12 3"]
    texts = [*byte_alphabet(), *(merge.replace(" ", "") for merge in merges), "<|end|>", "<|im_start|>"]
    types = [1] * (len(texts) - 2) + [3, 4]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": texts,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": merges,
        **more,
    }


@pytest.mark.parametrize("pre", sorted(PRE_TOKENIZERS))
def test_bytes_come_back(pre):
    tokenizer = tokenizer_of(byte_level(pre))
    for text in TEXTS:
        assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize(
    ("pre", "pieces"),
    [
        ("gpt-2", ["hello", "Ġa", "1", "2", "3"]),
        ("qwen2", ["hello", "Ġa", "1", "2", "3"]),
        ("llama-bpe", ["hello", "Ġa", "123"]),
    ],
)
def test_numbers_are_cut_as_the_file_says(pre, pieces):
    tokenizer = tokenizer_of(byte_level("smollm" if pre == "gpt-2" else pre))
    assert tokenizer.inner.encode("hello a123").tokens == pieces


def test_special_tokens_are_found_in_a_text():
    tokenizer = tokenizer_of(byte_level(**{"tokenizer.ggml.eos_token_id": 0}))
    texts = byte_level()["tokenizer.ggml.tokens"]
    end, start = texts.index("<|end|>"), texts.index("<|im_start|>")
    assert tokenizer.encode("<|im_start|>hello<|end|>") == [start, texts.index("hello"), end]
    assert tokenizer.decode([start, end]) == "<|im_start|>"  # the other one is a control token
    assert tokenizer.decode([start, end], special=True) == "<|im_start|><|end|>"
    assert tokenizer.eos_ids == {0, end}


def test_what_begins_a_text_is_put_in_front_once():
    more = {"tokenizer.ggml.bos_token_id": 3, "tokenizer.ggml.add_bos_token": True}
    tokenizer = tokenizer_of(byte_level(**more))
    first = tokenizer.inner.id_to_token(3)
    assert tokenizer.encode("hello")[0] == 3
    assert tokenizer.encode("hello", special=False)[0] != 3
    assert tokenizer.encode(first).count(3) == 1


SCORED = [
    "<unk>",
    "<s>",
    "</s>",
    *(f"<0x{byte:02X}>" for byte in range(256)),
    "▁",
    "a",
    "b",
    "c",
    "ab",
    "bc",
    "▁ab",
]


def sentence_piece(**more: object) -> dict[str, object]:
    """A GGUF vocabulary of kind "llama": "bc" has a higher score than "ab"."""
    scores = {"ab": -2.0, "bc": -1.0, "▁ab": -3.0}
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": SCORED,
        "tokenizer.ggml.scores": [scores.get(text, -10.0) for text in SCORED],
        "tokenizer.ggml.token_type": [2, 3, 3, *[6] * 256, *[1] * 7],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        **more,
    }


def test_the_highest_score_is_joined_first():
    tokenizer = tokenizer_of(sentence_piece())
    assert tokenizer.inner.encode("abc").tokens == ["▁", "a", "bc"]
    assert tokenizer.inner.encode("ab ab").tokens == ["▁ab", "▁ab"]
    assert tokenizer.encode("ab") == [1, SCORED.index("▁ab")]


def test_bytes_stand_for_what_no_word_writes():
    tokenizer = tokenizer_of(sentence_piece())
    assert tokenizer.inner.encode("é").tokens == ["▁", "<0xC3>", "<0xA9>"]
    assert tokenizer.decode(tokenizer.encode("a é b")) == "a é b"


def test_no_space_in_front_where_the_file_says_so():
    tokenizer = tokenizer_of(sentence_piece(**{"tokenizer.ggml.add_space_prefix": False}))
    assert tokenizer.inner.encode("ab").tokens == ["ab"]
    assert tokenizer.decode(tokenizer.encode("ab ab")) == "ab ab"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"tokenizer.ggml.model": "rwkv"}, NotImplementedError, "vocabularies of kind 'rwkv'"),
        ({"tokenizer.ggml.pre": "newest"}, NotImplementedError, "pre-tokenizer 'newest'"),
        ({"tokenizer.ggml.tokens": None}, ValueError, "is not a list of strings"),
        ({"tokenizer.ggml.tokens": [1, 2]}, ValueError, "is not a list of strings"),
        ({"tokenizer.ggml.merges": ["h"]}, ValueError, "'h' is not a merge of two tokens"),
        ({"tokenizer.ggml.merges": ["x zzz"]}, ValueError, "do not fit its vocabulary"),
        ({"tokenizer.ggml.merges": 7}, ValueError, "merges .* no list of texts"),
        ({"tokenizer.ggml.token_type": [1]}, ValueError, "token_type has no int for each of the"),
        (
            {"tokenizer.ggml.eos_token_id": "x"},
            ValueError,
            "eos_token_id must be the number of a token, not 'x'",
        ),
    ],
    ids=range(9),
)
def test_damaged_vocabularies(change, error, message):
    with pytest.raises(error, match=message):
        tokenizer_of(byte_level() | change)


def test_a_file_may_have_none():
    assert tokenizer_of({}) is None
    with pytest.raises(ValueError, match=r"has no tokenizer.ggml.scores"):
        tokenizer_of({"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": ["a"]})


# ---- streams ----


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("make", [byte_level, sentence_piece])
def test_a_stream_gives_the_text_and_no_half_characters(make, text):
    tokenizer = tokenizer_of(make())
    ids = tokenizer.encode(text, special=False)
    stream = tokenizer.decode_stream()
    pieces = [stream.push(token) for token in ids]
    assert "�" not in "".join(pieces)
    assert "".join([*pieces, stream.end()]) == tokenizer.decode(ids)


def test_a_stream_goes_on_after_a_prompt():
    tokenizer = tokenizer_of(sentence_piece())
    ids = tokenizer.encode("ab ab ab")
    stream = tokenizer.decode_stream(ids[:2])
    assert [stream.push(token) for token in ids[2:]] == [" ab", " ab"]


def test_bytes_that_never_become_text_are_given_at_last():
    tokenizer = tokenizer_of(byte_level())
    wrong = tokenizer.inner.token_to_id("Ã")  # the first byte of two
    stream = tokenizer.decode_stream()
    pieces = [stream.push(wrong) for _ in range(9)]
    assert pieces[0] == ""
    assert "�" in "".join(pieces)
    alone = tokenizer.decode_stream()
    assert (alone.push(wrong), alone.end()) == ("", "�")


def test_a_long_stream_keeps_little():
    tokenizer = Tokenizer(tiny.words(64))
    stream = tokenizer.decode_stream()
    token = tokenizer.encode("a")[0]
    assert "".join(stream.push(token) for _ in range(2000)) == "a" * 2000
    assert len(stream.ids) < 600


# ---- beside the tokenizer that the file was made from ----


@needs("smollm2")
def test_smollm2_asks_in_the_form_that_it_knows():
    tokenizer = tokenizer_of(read_gguf(require("smollm2")).metadata)
    for text in TEXTS:
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.eos_ids >= {2}
    asked = tokenizer.chat([{"role": "user", "content": "Hi"}])
    assert asked.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    assert tokenizer.encode(asked, special=False)[0] == 1


@pytest.mark.slow
@needs("smollm2", "gguf", "transformers", "torch")
def test_smollm2_reads_texts_as_transformers_does():
    transformers, path = require("transformers"), require("smollm2")
    theirs = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    ours = tokenizer_of(read_gguf(path).metadata)
    for text in [*TEXTS, "The capital of France is", "x = 3.14159; y[2024]", "<|im_start|>user\n"]:
        assert ours.encode(text) == theirs(text)["input_ids"], text
