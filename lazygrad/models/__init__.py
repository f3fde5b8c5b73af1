"""Models from the files that people have: to text, to vectors, from speech to words.

`load(path)` gives a LanguageModel, which generates text; a `Session` has several sequences decoded together,
and `Sampling` says how tokens are chosen. `Encoder.load` turns texts into vectors, `Whisper.load` speech into
words.
"""

from .bert import Encoder as Encoder
from .language_model import LanguageModel as LanguageModel
from .language_model import load as load
from .sampling import Sampling as Sampling
from .session import Event as Event
from .session import Session as Session
from .tokenizer import Tokenizer as Tokenizer
from .transcription import Segment as Segment
from .transcription import Transcript as Transcript
from .whisper import Whisper as Whisper
