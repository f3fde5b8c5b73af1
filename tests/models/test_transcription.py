"""The search for words and the way through windows, with a model that is a table."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from lazygrad.models.transcription import (
    Found,
    Rules,
    Speech,
    beam_search,
    repetition,
    sample,
    segments_of,
    transcribe,
)
from tests.helpers import needs
from tests.models.tiny import LETTERS, SPECIAL, TIMES, whisper_tokenizer

SYMBOLS = len(LETTERS) + len(SPECIAL) + TIMES
TICKS = 50  # of a second


class Tokenizer:
    """Letters and Whisper's tokens, without the library."""

    names = [*LETTERS, *SPECIAL]

    def token_to_id(self, name):
        return self.names.index(name) if name in self.names else None

    def id_to_token(self, token):
        return self.names[token]

    def decode(self, tokens):
        return "".join(self.names[token] for token in tokens)

    def encode(self, text, add_special_tokens):
        found = type("Encoding", (), {})()
        found.ids = [self.names.index(letter) for letter in text if letter in self.names]
        return found


@pytest.fixture
def speech():
    return Speech(Tokenizer(), {"suppress": [9], "suppress_first": [0], "multilingual": True}, SYMBOLS)


def letters(text):
    return [LETTERS.index(letter) for letter in text]


def at(speech, seconds):
    return speech.first_time + round(seconds * TICKS)


def logits(likely):
    """Logits of tokens by number; all others are unlikely."""
    found = np.full(SYMBOLS, -20.0, np.float32)
    for token, value in likely.items():
        found[token] = value
    return found


# ---- tokens ----


def test_tokens(speech):
    assert (speech.end, speech.start, speech.no_times) == (10, 11, 19)
    assert speech.languages == {"en": 12, "de": 13}
    assert speech.beginning("de", "translate", True) == [11, 13, 14]
    assert speech.beginning("en", "transcribe", False) == [11, 12, 15, 19]
    assert speech.text([at(speech, 0), *letters("bad"), at(speech, 1), speech.end]) == "bad"
    assert speech.seconds(at(speech, 0.5)) == 0.5


@needs("tokenizers")
def test_tokens_of_the_library():
    speech = Speech(whisper_tokenizer(), {}, SYMBOLS)
    assert speech.languages == {"en": 12, "de": 13}
    assert speech.text([1, 0, 3]) == "bad"
    assert not speech.multilingual


def test_one_language():
    speech = Speech(Tokenizer(), {"multilingual": False}, SYMBOLS)
    assert speech.beginning("en", "transcribe", True) == [speech.start]


def test_a_tokenizer_of_something_else():
    tokenizer = Tokenizer()
    tokenizer.names = LETTERS
    with pytest.raises(ValueError, match=r"has no token <\|startoftranscript\|> among the model's 71"):
        Speech(tokenizer, {}, SYMBOLS)


# ---- rules ----


def allowed(scores):
    return set(np.flatnonzero(scores > -np.inf).tolist())


def test_what_is_never_written(speech):
    flat = np.zeros(SYMBOLS, np.float32)
    found = Rules(speech, False)([1], flat)
    assert allowed(found) == {*range(9), speech.end, 16}
    assert math.isclose(np.exp(found).sum(), 1, rel_tol=1e-6)
    assert allowed(Rules(speech, False)([], flat)) == {*range(1, 9), speech.end, 16}


def test_times_come_in_pairs(speech):
    rules, flat = Rules(speech, True), np.zeros(SYMBOLS, np.float32)
    flat[: speech.first_time] = 9  # likely words: else a time it would be
    times = set(range(speech.first_time, SYMBOLS))
    words = {*range(9), speech.end, 16}
    start, end = at(speech, 0.2), at(speech, 0.6)
    assert allowed(rules([], flat)) == set(range(speech.first_time, at(speech, 1) + 1)) & times
    assert allowed(rules([start], flat)) == words
    assert allowed(rules([start, 1], flat)) == words | {t for t in times if t > start}
    assert allowed(rules([start, 1, end], flat)) == {speech.end, 16} | {t for t in times if t >= end}
    assert allowed(rules([start, 1, end, end], flat)) == words


def test_times_together_are_likelier_than_a_word(speech):
    start = at(speech, 0)
    likely = logits({1: 1.0, **dict.fromkeys(range(start + 1, start + 9), 0.0)})
    assert min(allowed(Rules(speech, True)([start, 2], likely))) == start + 1
    assert 1 in allowed(Rules(speech, True)([start, 2], logits({1: 1.0, start + 1: 0.0})))


# ---- searches ----


class Table:
    """Texts where what may follow depends on the last two tokens; it knows which texts it was told of."""

    def __init__(self, table, count):
        self.table, self.texts = table, [[] for _ in range(count)]

    def begin(self, heard, tokens, also):
        self.texts = [[] for _ in self.texts]
        return self.table(()), logits({0: 0.0})

    def next(self, tokens):
        assert len(tokens) == len(self.texts)
        self.texts = [[*text, token] for text, token in zip(self.texts, tokens, strict=True)]
        return np.stack([self.table(tuple(text)) for text in self.texts])

    def reorder(self, order):
        self.texts = [self.texts[i] for i in order]


def random_table(symbols, seed):
    def table(text):
        return (
            np.random.default_rng([seed, *text[-2:], len(text)]).standard_normal(symbols).astype(np.float32)
            * 2
        )

    return table


def plain(written, scores):
    """No rules: the log-probabilities."""
    shifted = scores - scores.max()
    return shifted - np.log(np.exp(shifted).sum())


@pytest.mark.parametrize("seed", range(6))
def test_as_many_beams_as_there_are_texts_find_the_best(seed):
    """All texts of up to three tokens, one by one, beside a beam that drops none."""
    end, most, table = 3, 3, random_table(4, seed)
    found = beam_search(Table(table, 40), table(()), plain, end, 40, most + 1)
    scores = {}
    for length in range(most + 1):
        for text in itertools.product(range(3), repeat=length):
            steps = [*text, end]
            scores[text] = sum(plain((), table(text[:i]))[token] for i, token in enumerate(steps))
    best = max(scores, key=lambda text: scores[text] / max(1, len(text)))
    assert tuple(found.tokens) == best
    assert math.isclose(found.score, scores[best], rel_tol=1e-5)


def test_one_beam_takes_the_likeliest_each_time():
    table, end = random_table(5, 1), 4
    found, text = beam_search(Table(table, 1), table(()), plain, end, 1, 10), []
    while len(text) < 10 and (token := int(table(tuple(text)).argmax())) != end:
        text.append(token)
    assert found.tokens == text


def test_a_beam_finds_what_greed_misses():
    """0 looks better at first, and whatever follows it is unlikely."""

    def table(text):
        likely = {(): {0: 0.6, 1: 0.4}, (0,): {0: 0.25, 1: 0.25, 2: 0.25, 3: 0.25}, (1,): {2: 0.99}}
        share = likely.get(text, {3: 1.0})
        return np.log(np.array([share.get(token, 1e-9) for token in range(4)], np.float32))

    assert beam_search(Table(table, 1), table(()), plain, 3, 1, 5).tokens[0] == 0
    assert beam_search(Table(table, 2), table(()), plain, 3, 2, 5).tokens == [1, 2]


def test_a_search_ends():
    table = lambda text: np.array([0.0, 1.0, -9.0], np.float32)
    assert beam_search(Table(table, 2), table(()), plain, 2, 2, 7).tokens == [1] * 7
    assert sample(Table(table, 1), table(()), plain, 2, 0.01, 7, np.random.default_rng(0)).tokens == [1] * 7


def test_fewer_tokens_than_beams():
    """Only one token may follow: the other beams are told so, and never win."""

    def table(text):
        return np.array([0.0, -np.inf, -np.inf, 9.0 if len(text) > 2 else -np.inf], np.float32)

    assert beam_search(Table(table, 3), table(()), plain, 3, 3, 9).tokens == [0, 0, 0]


def test_samples_are_as_probable_as_they_should_be():
    table = lambda text: np.log(np.array([0.7, 0.3, 1e-9], np.float32))
    random = np.random.default_rng(0)
    drawn = [sample(Table(table, 1), table(()), plain, 2, 1.0, 1, random).tokens[0] for _ in range(400)]
    assert 0.6 < drawn.count(0) / 400 < 0.8
    cold = [sample(Table(table, 1), table(()), plain, 2, 0.2, 1, random).tokens[0] for _ in range(400)]
    assert cold.count(0) > 380


def test_repetition():
    assert repetition("the same again and " * 30) > 10
    assert repetition("The quick brown fox jumps over the lazy dog.") < 1.2
    assert repetition("") == 0


# ---- windows ----


def test_segments(speech):
    a, b, c = (at(speech, s) for s in (0.1, 0.4, 0.9))
    whole = Found([a, *letters("bad"), b, b, *letters("cab"), c], -1.0)
    found, advance = segments_of(speech, whole, 2.0, 1.0, 1.0)
    assert [(s.start, s.end, s.text) for s in found] == [(2.1, 2.4, "bad"), (2.4, 2.9, "cab")]
    assert advance == 1.0


def test_words_without_an_end_are_heard_again(speech):
    a, b = at(speech, 0), at(speech, 0.4)
    found, advance = segments_of(
        speech, Found([a, *letters("bad"), b, b, *letters("ca")], -1.0), 0.0, 1.0, 1.0
    )
    assert ([s.text for s in found], advance) == (["bad"], 0.4)


def test_one_segment(speech):
    a, b = at(speech, 0.1), at(speech, 0.4)
    found, advance = segments_of(speech, Found([a, *letters("bad"), b], -1.0), 0.0, 1.0, 1.0)
    assert ([(s.start, s.end) for s in found], advance) == ([(0.1, 0.4)], 1.0)
    found, advance = segments_of(speech, Found(letters("bad"), -1.0), 5.0, 0.7, 1.0)
    assert ([(s.start, s.end) for s in found], advance) == ([(5.0, 5.7)], 1.0)
    assert segments_of(speech, Found([a], -1.0), 0.0, 1.0, 1.0) == ([], 1.0)


class Scripted:
    """A model that says of each window what the script says, and keeps what it was asked."""

    window, most_tokens = 16_000, 40

    def __init__(self, speech, script, silence=-20.0):
        self.speech, self.script, self.silence = speech, list(script), silence
        self.prompts, self.sounds = [], []

    def hear(self, samples):
        self.sounds.append(samples.numpy())
        return

    def writing(self, count):
        tokens = self.script[min(len(self.sounds), len(self.script)) - 1]

        def table(text):
            return logits({tokens[len(text)] if len(text) < len(tokens) else self.speech.end: 20.0})

        found, model = Table(table, count), self
        begin = found.begin

        def asked(heard, prompt, also):
            model.prompts.append(list(prompt))
            first, _ = begin(heard, prompt, also)
            return first, logits({1: 0.0, model.speech.silence: model.silence})

        found.begin = asked
        return found


def test_windows_follow_the_times(speech):
    """The second window begins where the first was understood."""
    a, b = at(speech, 0), at(speech, 0.4)
    model = Scripted(
        speech, [[a, *letters("bad"), b, b, *letters("c")], [a, *letters("cab"), at(speech, 0.8)]]
    )
    samples = np.arange(20_000, dtype=np.float32) / 20_000
    found = transcribe(model, samples, language="en")
    assert (found.text, found.language) == ("badcab", "en")
    assert [(s.start, s.end) for s in found.segments] == [(0.0, 0.4), (0.4, 1.2)]
    np.testing.assert_array_equal(model.sounds[1][:13_600], samples[6400:])
    assert model.prompts == [[11, 12, 15], [speech.previous, *letters("bad"), 11, 12, 15]]


def test_words_before_are_no_help_if_unwanted(speech):
    model = Scripted(speech, [letters("bad"), letters("cab")])
    found = transcribe(model, np.zeros(20_000), language="de", previous=False, timestamps=False)
    assert (found.text, found.language) == ("badcab", "de")
    assert model.prompts == [[11, 13, 15, 19]] * 2


def test_a_prompt(speech):
    model = Scripted(speech, [letters("bad")])
    transcribe(model, np.zeros(100), language="en", prompt="dad", timestamps=False)
    assert model.prompts == [[speech.previous, *letters("dad"), 11, 12, 15, 19]]


def test_silence_is_left_out(speech):
    """Nobody speaks, and the words are unlikely."""
    model = Scripted(speech, [letters("bad")], silence=20.0)
    unsure = model.writing

    def writing(count):
        found = unsure(count)
        table = found.table
        found.table = lambda text: table(text) / 40
        return found

    model.writing = writing
    assert transcribe(model, np.zeros(100), language="en", timestamps=False).text == ""
    model.silence = -20.0
    model.sounds.clear()
    assert transcribe(model, np.zeros(100), language="en", timestamps=False, temperatures=(0,)).text == "bad"


def test_a_text_that_repeats_itself_is_tried_again(speech):
    model = Scripted(speech, [letters("ab" * 10), letters("ab" * 10)])
    speech.text = lambda tokens: "the same again " * 50
    transcribe(model, np.zeros(100), language="en", timestamps=False, temperatures=(0.0, 0.1, 0.2))
    assert len(model.prompts) == 3


def test_the_language_is_found(speech):
    model = Scripted(speech, [letters("bad")])
    original = model.writing

    def writing(count):
        found = original(count)
        begin = found.begin

        def asked(heard, prompt, also):
            first, other = begin(heard, prompt, also)
            return (logits({13: 5.0}) if prompt == [11] else first), other

        found.begin = asked
        return found

    model.writing = writing
    assert transcribe(model, np.zeros(100), timestamps=False).language == "de"
    assert model.prompts == [[11], [11, 13, 15, 19]]


def test_nothing_to_hear(speech):
    assert transcribe(Scripted(speech, [[]]), np.zeros(0), language="en") == ("", [], "en")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beams": 0}, "beams must be a whole number of at least 1, not 0"),
        ({"task": "sing"}, "task must be transcribe or translate, not 'sing'"),
        ({"language": "xx"}, "no language xx; this model has de, en"),
        ({"temperatures": ()}, "temperatures must be one or more numbers of at least 0"),
        ({"temperatures": (-1,)}, "temperatures must be one or more numbers of at least 0"),
        ({"rate": 0}, "rate must be a number of samples a second, not 0"),
    ],
)
def test_options(speech, options, message):
    with pytest.raises(ValueError, match=message):
        transcribe(Scripted(speech, [[]]), np.zeros(100), **options)


def test_a_model_without_times():
    speech = Speech(Tokenizer(), {"multilingual": False}, SYMBOLS - TIMES)
    assert transcribe(Scripted(speech, [letters("b")]), np.zeros(9), timestamps=False).text == "b"
    with pytest.raises(ValueError, match="no tokens for times; give timestamps=False"):
        transcribe(Scripted(speech, [[]]), np.zeros(9))


def test_samples(speech):
    with pytest.raises(ValueError, match=r"samples have one axis, not shape \(2, 3\)"):
        transcribe(Scripted(speech, [[]]), np.zeros((2, 3)))
    with pytest.raises(TypeError, match=r"floats between -1 and 1, not dtypes\.short: divide int16 by 32768"):
        transcribe(Scripted(speech, [[]]), np.zeros(5, np.int16))
    with pytest.raises(ValueError, match="the samples are not all finite"):
        transcribe(Scripted(speech, [[]]), [0.0, math.nan])
    english = Speech(Tokenizer(), {"multilingual": False}, SYMBOLS)
    with pytest.raises(ValueError, match="this model only transcribes English"):
        transcribe(Scripted(english, [[]]), [0.0], language="de")
