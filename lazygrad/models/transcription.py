"""Speech to text with a model of Whisper: one window after another, and the search for its words.

What is done is what its paper says (Radford et al. 2022, section 4.5): greedy search or a beam; again at
higher temperatures where the text repeats itself or is unlikely; windows that begin where the last one was
understood.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from ..dtype import dtypes
from ..nn.formats.source import shown
from ..shape import shape_text
from ..tensor import Tensor
from .audio import HOP, RATE, read_wav, resample

#: Seconds from one timestamp to the next.
TICK = 2 * HOP / RATE
#: A text begins within so many seconds of its window.
LATEST_BEGIN = 1.0
#: A text that zlib makes smaller than by this factor does not repeat itself.
MOST_REPETITION = 2.4
#: The least mean log-probability of a token of a text that is believed.
LEAST_LIKELY = -1.0
#: How probable it must be that nobody speaks, for a window with a text that is not believed to be left out.
SILENCE = 0.6
#: Above this temperature a text is no help for the next one.
HOT = 0.5

# ---- what the caller gets ----


class Segment(NamedTuple):
    """Some words.

    start, end       in seconds
    log_probability  the mean of the tokens of its window        temperature  at which these were found
    silence          how probable it is that nobody speaks
    """

    start: float
    end: float
    text: str
    tokens: list[int]
    log_probability: float
    temperature: float
    silence: float


class Transcript(NamedTuple):
    """What was said; `language` is a code such as `en`."""

    text: str
    segments: list[Segment]
    language: str


# ---- what tokens mean ----


class Speech:
    """The tokens of a model that mean something else than text.

    settings  `suppress` and `suppress_first`: tokens that are never written, and never first;
              `multilingual`, if it is known
    """

    def __init__(self, tokenizer: Any, settings: dict[str, Any], symbols: int) -> None:
        self.tokenizer, self.symbols = tokenizer, symbols

        def token(*names: str) -> int:
            found = next((i for i in map(tokenizer.token_to_id, names) if i is not None), None)
            if found is None or not 0 <= found < symbols:
                raise ValueError(f"the tokenizer has no token {names[0]} among the model's {symbols}")
            return int(found)

        self.start, self.end = token("<|startoftranscript|>"), token("<|endoftext|>")
        self.tasks = {"transcribe": token("<|transcribe|>"), "translate": token("<|translate|>")}
        self.previous, self.no_times = token("<|startofprev|>"), token("<|notimestamps|>")
        self.silence = token("<|nospeech|>", "<|nocaptions|>")
        self.first_time = self.no_times + 1
        names = {i: tokenizer.id_to_token(i) for i in range(self.start + 1, min(self.tasks.values()))}
        self.languages: dict[str, int] = {name[2:-2]: i for i, name in names.items() if name}
        known = settings.get("multilingual")
        # the models for English have one symbol less than the smallest of the others
        self.multilingual = symbols >= 51_865 if known is None else bool(known)
        self.suppressed, self.suppressed_first = (
            _ids(settings.get(key), symbols, key) for key in ("suppress", "suppress_first")
        )
        # what is written only at the beginning, by whoever asks
        self.suppressed += [self.start, self.previous, self.silence, *self.tasks.values()]
        self.suppressed += self.languages.values()

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens; those that are no text are left out."""
        return str(self.tokenizer.decode([token for token in tokens if token < self.end]))

    def seconds(self, token: int) -> float:
        return (token - self.first_time) * TICK

    def beginning(self, language: str, task: str, timestamps: bool) -> list[int]:
        """The tokens that say what is wanted."""
        more = [self.languages[language], self.tasks[task]] if self.multilingual else []
        return [self.start, *more, *([] if timestamps else [self.no_times])]


def _ids(values: Any, symbols: int, what: str) -> list[int]:
    if values is None:
        return []
    if not isinstance(values, list) or not all(isinstance(v, int) and v >= -1 for v in values):
        raise ValueError(f"the tokens to {what} must be a list of numbers, not {values!r:.100}")
    return [value for value in values if 0 <= value < symbols]


# ---- which tokens may follow ----


class Rules:
    """What may follow tokens that were written: the log-probabilities of everything else become -inf."""

    def __init__(self, speech: Speech, timestamps: bool) -> None:
        self.speech, self.timestamps = speech, timestamps

    def __call__(self, written: Sequence[int], logits: Any) -> Any:
        """The log-probabilities of all tokens behind those that were written, in numpy."""
        import numpy as np

        speech, allowed = self.speech, logits.astype(np.float32)
        allowed[speech.suppressed] = -np.inf
        allowed[speech.no_times] = -np.inf
        if not written:
            allowed[speech.suppressed_first] = -np.inf
        if not self.timestamps:
            allowed[speech.first_time :] = -np.inf
            return _log_softmax(allowed)
        self._times(written, allowed)
        found = _log_softmax(allowed)
        # where any of the times is likelier than the likeliest word, a time it is
        times, words = found[speech.first_time :], found[: speech.first_time]
        if times.size and np.exp(times).sum() > np.exp(words.max()):
            words[:] = -np.inf
            found = _log_softmax(found)
        return found

    def _times(self, written: Sequence[int], allowed: Any) -> None:
        """Times come in pairs, the end of some words and the beginning of the next, and never go back."""
        import numpy as np

        speech, first = self.speech, self.speech.first_time
        if not written:
            allowed[:first] = -np.inf
            allowed[first + 1 + round(LATEST_BEGIN / TICK) :] = -np.inf
            return
        closed = written[-1] >= first
        if closed and (len(written) < 2 or written[-2] >= first):
            allowed[first:] = -np.inf  # words follow
        elif closed:
            allowed[: speech.end] = -np.inf  # the beginning of the next words follows, or the end
        times = [token for token in written if token >= first]
        # words take time; a beginning may be the end before it
        least = times[-1] if closed else times[-1] + 1
        allowed[first:least] = -np.inf


def _log_softmax(values: Any) -> Any:
    import numpy as np

    shifted = values - values.max()
    return shifted - np.log(np.exp(shifted).sum())


# ---- the search for a text ----


class Texts(Protocol):
    """Texts that are written of one sound (`whisper.Writing`)."""

    def begin(self, heard: Any, tokens: Sequence[int], also: int) -> tuple[Any, Any]: ...
    def next(self, tokens: Sequence[int]) -> Any: ...
    def reorder(self, order: Sequence[int]) -> None: ...


class Model(Protocol):
    """What transcription needs of a model (`whisper.Captured`)."""

    @property
    def speech(self) -> Speech: ...
    @property
    def most_tokens(self) -> int: ...
    @property
    def window(self) -> int: ...
    def hear(self, samples: Tensor) -> Any: ...
    def writing(self, count: int) -> Texts: ...


class Found(NamedTuple):
    """A text of a window: tokens, without the end; the sum of their log-probabilities, with the end."""

    tokens: list[int]
    score: float
    silence: float = 0.0
    temperature: float = 0.0

    @property
    def likely(self) -> float:
        """The mean log-probability of a token."""
        return self.score / (len(self.tokens) + 1)


def beam_search(texts: Texts, first: Any, rules: Rules, end: int, beams: int, most: int) -> Found:
    """The likeliest of `beams` texts that are followed at once; with one, each token is the likeliest.

    first  the logits of the first token        most  the greatest number of tokens

    It ends when as many texts have ended as are followed; the one with the greatest mean is taken.
    """
    import numpy as np

    live: list[Found] = [Found([], 0.0)]
    logits, ended = first[None], list[Found]()
    for step in range(most):
        candidates: list[tuple[float, int, int]] = []
        for i, text in enumerate(live):
            scores = rules(text.tokens, logits[i])
            best = np.argpartition(-scores, min(beams, scores.size - 1))[: beams + 1]
            candidates += [(text.score + float(scores[t]), i, int(t)) for t in best if scores[t] > -np.inf]
        order, grown = list[int](), list[Found]()
        for score, i, token in sorted(candidates, reverse=True):
            if token == end:
                ended.append(Found(live[i].tokens, score))
            else:
                order.append(i)
                grown.append(Found([*live[i].tokens, token], score))
            # with one beam the end is taken only where it is the likeliest
            if len(grown) == beams or (beams == 1 and ended):
                break
        if len(ended) >= beams or not grown or step == most - 1:
            live = grown
            break
        while len(grown) < beams:  # fewer may follow than are wanted
            order.append(order[-1])
            grown.append(Found(grown[-1].tokens, -math.inf))
        if step:
            texts.reorder(order)
        live, logits = grown, texts.next([text.tokens[-1] for text in grown])
    return max(ended or live, key=lambda text: text.score / max(1, len(text.tokens)))


def sample(
    texts: Texts, first: Any, rules: Rules, end: int, temperature: float, most: int, random: Any
) -> Found:
    """A text by chance: each token as probable as softmax(logits / temperature) says."""
    import numpy as np

    tokens: list[int] = []
    score, logits = 0.0, first
    for step in range(most):
        scores = rules(tokens, logits)
        chances = np.exp(_log_softmax(scores.astype(np.float64) / temperature))
        token = int(random.choice(chances.size, p=chances / chances.sum()))
        score += float(scores[token])
        if token == end:
            break
        tokens.append(token)
        if step < most - 1:
            logits = texts.next([token])[0]
    return Found(tokens, score)


def repetition(text: str) -> float:
    """How often zlib's output goes into a text: more than 2.4 times where it repeats itself."""
    data = text.encode()
    return len(data) / len(zlib.compress(data))


# ---- one window after another ----


class _Options(NamedTuple):
    language: str
    task: str
    beams: int
    timestamps: bool
    temperatures: tuple[float, ...]
    random: Any


def transcribe(
    model: Model,
    audio: Any,
    rate: int | None = None,
    language: str | None = None,
    task: str = "transcribe",
    beams: int = 1,
    timestamps: bool = True,
    temperatures: Sequence[float] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    previous: bool = True,
    prompt: str = "",
    seed: int = 0,
) -> Transcript:
    """The text of speech, and its segments.

    audio         samples, floats between -1 and 1 (a Tensor, an array or a list), or the path of a WAV file
    rate          samples of a second: 16,000 if not given; a file says its own
    language      a code such as `en`; models of several languages find out by themselves if it is not given
    task          `transcribe`, or `translate` into English
    beams         how many texts are followed at once; 1 takes the likeliest token each time
    timestamps    whether segments come with times; without them there is one for each window of 30 seconds
    temperatures  0 searches, more draws by chance; the next is tried where a text repeats itself or is
                  unlikely
    previous      whether the words before a window help to understand it
    prompt        words that stand before all others, for names and how they are spelt
    seed          of what is drawn
    """
    import numpy as np

    speech = model.speech
    if beams < 1 or isinstance(beams, bool) or not isinstance(beams, int):
        raise ValueError(f"beams must be a whole number of at least 1, not {beams!r}")
    if task not in speech.tasks:
        raise ValueError(f"task must be transcribe or translate, not {task!r}")
    if not temperatures or any(not 0 <= t < math.inf for t in temperatures):
        raise ValueError(f"temperatures must be one or more numbers of at least 0, not {temperatures!r}")
    if language is not None and language not in speech.languages:
        raise ValueError(
            f"no language {shown(str(language))}; this model has {', '.join(sorted(speech.languages))}"
        )
    if not speech.multilingual and (language not in (None, "en") or task != "transcribe"):
        raise ValueError("this model only transcribes English; other languages need a multilingual model")
    if timestamps and speech.first_time >= speech.symbols:
        raise ValueError("this model has no tokens for times; give timestamps=False")
    samples = _samples(audio, rate)
    options = _Options(
        language or "en", task, beams, timestamps, tuple(temperatures), np.random.default_rng(seed)
    )
    segments: list[Segment] = []
    history = [int(i) for i in speech.tokenizer.encode(f" {prompt.strip()}", add_special_tokens=False).ids]
    history = history if prompt else []
    begin = 0
    while begin < len(samples):
        window = np.zeros(model.window, np.float32)
        piece = samples[begin : begin + model.window]
        window[: len(piece)] = piece
        heard = model.hear(Tensor(window))
        if language is None and speech.multilingual:
            language = _language(model, heard)
            options = options._replace(language=language)
        found = _text(model, heard, history, options)
        advance = model.window
        if found.silence <= SILENCE or found.likely >= LEAST_LIKELY:
            spoken, seconds = segments_of(speech, found, begin / RATE, len(piece) / RATE, model.window / RATE)
            segments += spoken
            advance = round(seconds * RATE)
            said = [token for segment in spoken for token in segment.tokens]
            history = [*history, *said] if previous and found.temperature <= HOT else []
        begin += advance
    text = "".join(segment.text for segment in segments).strip()
    return Transcript(text, segments, options.language)


def _samples(audio: Any, rate: int | None) -> Any:
    """What the caller gave, as samples at 16,000 a second in numpy."""
    import numpy as np

    if isinstance(audio, (str, os.PathLike)):
        if rate is not None:
            raise ValueError("a file has a rate of its own; rate= is for samples")
        tensor, rate = read_wav(audio)
    else:
        tensor = audio if isinstance(audio, Tensor) else Tensor(np.asarray(audio))
        if not dtypes.is_float(tensor.dtype):
            raise TypeError(
                f"samples must be floats between -1 and 1, not {tensor.dtype}: divide int16 by 32768"
            )
        if tensor.ndim != 1:
            raise ValueError(
                f"samples have one axis, not shape {shape_text(tensor.shape)}; average the channels first"
            )
    found = resample(tensor.cast("float32"), RATE if rate is None else rate).numpy()
    if not np.isfinite(found).all():
        raise ValueError("the samples are not all finite")
    return found


def _language(model: Model, heard: Any) -> str:
    """The language that the first token behind the beginning says."""
    speech = model.speech
    logits, _ = model.writing(1).begin(heard, [speech.start], 0)
    scores = {name: float(logits[token]) for name, token in speech.languages.items()}
    return max(scores, key=lambda name: scores[name])


def _text(model: Model, heard: Any, history: Sequence[int], options: _Options) -> Found:
    """The text of a window: at the first temperature at which it is believed, or else the likeliest."""
    import numpy as np

    speech, rules = model.speech, Rules(model.speech, options.timestamps)
    half = model.most_tokens // 2
    beginning = speech.beginning(options.language, options.task, options.timestamps)
    before = [speech.previous, *history[-(half - 1) :]] if history else []
    tokens = [*before, *beginning]
    most = min(half, model.most_tokens - len(tokens))
    tried = list[Found]()
    for temperature in options.temperatures:
        texts = model.writing(options.beams if temperature == 0 else 1)
        first, at_start = texts.begin(heard, tokens, len(before))
        silence = float(np.exp(_log_softmax(at_start))[speech.silence])
        if temperature == 0:
            found = beam_search(texts, first, rules, speech.end, options.beams, most)
        else:
            found = sample(texts, first, rules, speech.end, temperature, most, options.random)
        found = found._replace(silence=silence, temperature=temperature)
        silent = silence > SILENCE and found.likely < LEAST_LIKELY
        believed = found.likely >= LEAST_LIKELY and repetition(speech.text(found.tokens)) <= MOST_REPETITION
        if believed or silent:
            return found
        tried.append(found)
    return max(tried, key=lambda found: found.likely)


def segments_of(
    speech: Speech, found: Found, offset: float, heard: float, window: float
) -> tuple[list[Segment], float]:
    """(the segments in the tokens of a window, the seconds after which the next window begins).

    offset  where the window begins        heard  how many seconds of it are sound        window  its length

    Two times side by side end one segment and begin the next; where words follow the last such pair without
    an end, the next window begins with them.
    """
    tokens, first = found.tokens, speech.first_time
    is_time = [token >= first for token in tokens]
    cuts = [i for i in range(1, len(tokens)) if is_time[i - 1] and is_time[i]]
    ends = len(tokens) > 1 and is_time[-1] and not is_time[-2]
    advance = window
    if cuts:
        if ends:
            cuts.append(len(tokens))
        else:
            advance = speech.seconds(tokens[cuts[-1] - 1])
        pieces = list(_segments(speech, tokens, cuts))
    else:
        times = [speech.seconds(token) for token in tokens if token >= first]
        end = times[-1] if len(times) > 1 else heard
        pieces = [(times[0] if len(times) > 1 else 0.0, end, tokens)]
    segments = []
    for begin, end, part in pieces:
        words = [token for token in part if token < speech.end]
        text = speech.text(words)
        if text.strip():
            segments.append(
                Segment(
                    round(offset + begin, 2),
                    round(offset + end, 2),
                    text,
                    words,
                    found.likely,
                    found.temperature,
                    found.silence,
                )
            )
    return segments, advance if advance > 0 else window


def _segments(speech: Speech, tokens: list[int], cuts: list[int]) -> Iterator[tuple[float, float, list[int]]]:
    """The tokens between two cuts, each with its first and its last time."""
    last = 0
    for cut in cuts:
        part = tokens[last:cut]
        yield speech.seconds(part[0]), speech.seconds(part[-1]), part
        last = cut
