"""Language models from the files that people have: `load(path)` gives a LanguageModel, which generates text.

A `Session` has several sequences decoded together; `Sampling` says how tokens are chosen.
"""

from .language_model import LanguageModel as LanguageModel
from .language_model import load as load
from .sampling import Sampling as Sampling
from .session import Event as Event
from .session import Session as Session
from .tokenizer import Tokenizer as Tokenizer
