"""Optimizers, learning-rate schedules, and what happens to gradients around a step."""

from .adam import LAMB, Adam, Adamax, AdamW, NAdam, RAdam
from .adaptive import Adadelta, Adafactor, Adagrad, RMSprop
from .combined import ChainedScheduler, SequentialLR
from .cycles import CosineAnnealingLR, CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from .gradients import EMA, GradScaler, clip_grad_norm_, clip_grad_value_
from .optimizer import Group, Optimizer
from .plateau import ReduceLROnPlateau
from .schedule import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    LRScheduler,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from .sgd import LARS, SGD, Lion, Muon

__all__ = [
    "EMA",
    "LAMB",
    "LARS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "GradScaler",
    "Group",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "Lion",
    "MultiStepLR",
    "MultiplicativeLR",
    "Muon",
    "NAdam",
    "OneCycleLR",
    "Optimizer",
    "PolynomialLR",
    "RAdam",
    "RMSprop",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
    "clip_grad_norm_",
    "clip_grad_value_",
]
