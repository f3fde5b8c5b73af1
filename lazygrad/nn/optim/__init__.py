"""Optimizers, learning-rate schedules, and what happens to gradients around a step."""

import typing

from .adam import LAMB as LAMB
from .adam import Adam as Adam
from .adam import Adamax as Adamax
from .adam import AdamW as AdamW
from .adam import NAdam as NAdam
from .adam import RAdam as RAdam
from .adaptive import Adadelta as Adadelta
from .adaptive import Adafactor as Adafactor
from .adaptive import Adagrad as Adagrad
from .adaptive import RMSprop as RMSprop
from .adaptive import Rprop as Rprop
from .averaged import ASGD as ASGD
from .combined import ChainedScheduler as ChainedScheduler
from .combined import SequentialLR as SequentialLR
from .cycles import CosineAnnealingLR as CosineAnnealingLR
from .cycles import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from .cycles import CyclicLR as CyclicLR
from .cycles import OneCycleLR as OneCycleLR
from .gradients import EMA as EMA
from .gradients import GradScaler as GradScaler
from .gradients import clip_grad_norm_ as clip_grad_norm_
from .gradients import clip_grad_value_ as clip_grad_value_
from .gradients import get_total_norm as get_total_norm
from .lbfgs import LBFGS as LBFGS
from .optimizer import Group as Group
from .optimizer import Optimizer as Optimizer
from .plateau import ReduceLROnPlateau as ReduceLROnPlateau
from .schedule import ConstantLR as ConstantLR
from .schedule import ExponentialLR as ExponentialLR
from .schedule import LambdaLR as LambdaLR
from .schedule import LinearLR as LinearLR
from .schedule import LRScheduler as LRScheduler
from .schedule import MultiplicativeLR as MultiplicativeLR
from .schedule import MultiStepLR as MultiStepLR
from .schedule import PolynomialLR as PolynomialLR
from .schedule import StepLR as StepLR
from .sgd import LARS as LARS
from .sgd import SGD as SGD
from .sgd import Lion as Lion
from .sgd import Muon as Muon

if not typing.TYPE_CHECKING:  # which takes each name above as exported
    __all__ = [name for name, value in globals().items() if callable(value) and not name.startswith("_")]
