"""How good a model is, over many batches: what is counted stays on the device until `compute` is called.

`update` adds a batch of Tensors, arrays or lists, and may be part of a jitted step (but for `AUC`); `compute`
gives the number so far; `reset` begins anew. A metric's memory is found by `nn.state`, so a metric can be a
part of a `TrainingState`.
"""

from .classes import AUC as AUC
from .classes import Accuracy as Accuracy
from .classes import ConfusionMatrix as ConfusionMatrix
from .classes import Perplexity as Perplexity
from .means import Mean as Mean
from .means import RunningMean as RunningMean
from .regression import MAE as MAE
from .regression import R2 as R2
from .regression import RMSE as RMSE
from .texts import BLEU as BLEU
from .texts import CharacterErrorRate as CharacterErrorRate
from .texts import WordErrorRate as WordErrorRate
from .texts import edit_distance as edit_distance

__all__ = [
    "AUC",
    "BLEU",
    "MAE",
    "R2",
    "RMSE",
    "Accuracy",
    "CharacterErrorRate",
    "ConfusionMatrix",
    "Mean",
    "Perplexity",
    "RunningMean",
    "WordErrorRate",
    "edit_distance",
]
