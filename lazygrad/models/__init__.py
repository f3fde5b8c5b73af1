"""Models from the files that people have: texts to vectors, speech to words."""

from .bert import Encoder as Encoder
from .transcription import Segment as Segment
from .transcription import Transcript as Transcript
from .whisper import Whisper as Whisper
