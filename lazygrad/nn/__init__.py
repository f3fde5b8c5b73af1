"""What networks are built with and trained by: layers, `functional`, `init`, `optim`, `state`, `datasets`;
`formats` of files that weights come from, `quantized` weights, `lora`, `metrics`."""

import typing

from . import datasets as datasets
from . import formats as formats
from . import functional as functional
from . import init as init
from . import lora as lora
from . import metrics as metrics
from . import optim as optim
from . import quantized as quantized
from . import state as state
from . import utils as utils
from .activation import CELU as CELU
from .activation import ELU as ELU
from .activation import GELU as GELU
from .activation import GLU as GLU
from .activation import SELU as SELU
from .activation import Hardshrink as Hardshrink
from .activation import Hardsigmoid as Hardsigmoid
from .activation import Hardswish as Hardswish
from .activation import Hardtanh as Hardtanh
from .activation import LeakyReLU as LeakyReLU
from .activation import LogSigmoid as LogSigmoid
from .activation import LogSoftmax as LogSoftmax
from .activation import Mish as Mish
from .activation import PReLU as PReLU
from .activation import ReLU as ReLU
from .activation import ReLU6 as ReLU6
from .activation import RReLU as RReLU
from .activation import Sigmoid as Sigmoid
from .activation import SiLU as SiLU
from .activation import Softmax as Softmax
from .activation import Softmax2d as Softmax2d
from .activation import Softmin as Softmin
from .activation import Softplus as Softplus
from .activation import Softshrink as Softshrink
from .activation import Softsign as Softsign
from .activation import Tanh as Tanh
from .activation import Tanhshrink as Tanhshrink
from .activation import Threshold as Threshold
from .adaptive_softmax import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
from .attention import MultiheadAttention as MultiheadAttention
from .attention import causal_mask as causal_mask
from .containers import ModuleDict as ModuleDict
from .containers import ModuleList as ModuleList
from .containers import Parameter as Parameter
from .containers import ParameterDict as ParameterDict
from .containers import ParameterList as ParameterList
from .convolution import Conv1d as Conv1d
from .convolution import Conv2d as Conv2d
from .convolution import Conv3d as Conv3d
from .convolution import ConvTranspose1d as ConvTranspose1d
from .convolution import ConvTranspose2d as ConvTranspose2d
from .convolution import ConvTranspose3d as ConvTranspose3d
from .data import DataLoader as DataLoader
from .dropout import AlphaDropout as AlphaDropout
from .dropout import Dropout as Dropout
from .dropout import Dropout1d as Dropout1d
from .dropout import Dropout2d as Dropout2d
from .dropout import Dropout3d as Dropout3d
from .dropout import FeatureAlphaDropout as FeatureAlphaDropout
from .embedding import Embedding as Embedding
from .embedding import EmbeddingBag as EmbeddingBag
from .images import ChannelShuffle as ChannelShuffle
from .images import Fold as Fold
from .images import PixelShuffle as PixelShuffle
from .images import PixelUnshuffle as PixelUnshuffle
from .images import Unfold as Unfold
from .images import Upsample as Upsample
from .images import UpsamplingBilinear2d as UpsamplingBilinear2d
from .images import UpsamplingNearest2d as UpsamplingNearest2d
from .layers import Bilinear as Bilinear
from .layers import Flatten as Flatten
from .layers import Identity as Identity
from .layers import Linear as Linear
from .layers import Unflatten as Unflatten
from .lazy import LazyBatchNorm1d as LazyBatchNorm1d
from .lazy import LazyBatchNorm2d as LazyBatchNorm2d
from .lazy import LazyBatchNorm3d as LazyBatchNorm3d
from .lazy import LazyConv1d as LazyConv1d
from .lazy import LazyConv2d as LazyConv2d
from .lazy import LazyConv3d as LazyConv3d
from .lazy import LazyConvTranspose1d as LazyConvTranspose1d
from .lazy import LazyConvTranspose2d as LazyConvTranspose2d
from .lazy import LazyConvTranspose3d as LazyConvTranspose3d
from .lazy import LazyInstanceNorm1d as LazyInstanceNorm1d
from .lazy import LazyInstanceNorm2d as LazyInstanceNorm2d
from .lazy import LazyInstanceNorm3d as LazyInstanceNorm3d
from .lazy import LazyLinear as LazyLinear
from .logs import Log as Log
from .logs import log as log
from .logs import read_log as read_log
from .losses import BCELoss as BCELoss
from .losses import BCEWithLogitsLoss as BCEWithLogitsLoss
from .losses import CosineEmbeddingLoss as CosineEmbeddingLoss
from .losses import CosineSimilarity as CosineSimilarity
from .losses import CrossEntropyLoss as CrossEntropyLoss
from .losses import CTCLoss as CTCLoss
from .losses import GaussianNLLLoss as GaussianNLLLoss
from .losses import HingeEmbeddingLoss as HingeEmbeddingLoss
from .losses import HuberLoss as HuberLoss
from .losses import KLDivLoss as KLDivLoss
from .losses import L1Loss as L1Loss
from .losses import MarginRankingLoss as MarginRankingLoss
from .losses import MSELoss as MSELoss
from .losses import MultiLabelMarginLoss as MultiLabelMarginLoss
from .losses import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from .losses import MultiMarginLoss as MultiMarginLoss
from .losses import NLLLoss as NLLLoss
from .losses import PairwiseDistance as PairwiseDistance
from .losses import PoissonNLLLoss as PoissonNLLLoss
from .losses import SmoothL1Loss as SmoothL1Loss
from .losses import SoftMarginLoss as SoftMarginLoss
from .losses import TripletMarginLoss as TripletMarginLoss
from .losses import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from .module import Module as Module
from .normalization import BatchNorm as BatchNorm
from .normalization import BatchNorm1d as BatchNorm1d
from .normalization import BatchNorm2d as BatchNorm2d
from .normalization import BatchNorm3d as BatchNorm3d
from .normalization import GroupNorm as GroupNorm
from .normalization import InstanceNorm as InstanceNorm
from .normalization import InstanceNorm1d as InstanceNorm1d
from .normalization import InstanceNorm2d as InstanceNorm2d
from .normalization import InstanceNorm3d as InstanceNorm3d
from .normalization import LayerNorm as LayerNorm
from .normalization import LayerNorm2d as LayerNorm2d
from .normalization import LocalResponseNorm as LocalResponseNorm
from .normalization import RMSNorm as RMSNorm
from .padding import CircularPad1d as CircularPad1d
from .padding import CircularPad2d as CircularPad2d
from .padding import CircularPad3d as CircularPad3d
from .padding import ConstantPad1d as ConstantPad1d
from .padding import ConstantPad2d as ConstantPad2d
from .padding import ConstantPad3d as ConstantPad3d
from .padding import ReflectionPad1d as ReflectionPad1d
from .padding import ReflectionPad2d as ReflectionPad2d
from .padding import ReflectionPad3d as ReflectionPad3d
from .padding import ReplicationPad1d as ReplicationPad1d
from .padding import ReplicationPad2d as ReplicationPad2d
from .padding import ReplicationPad3d as ReplicationPad3d
from .padding import ZeroPad1d as ZeroPad1d
from .padding import ZeroPad2d as ZeroPad2d
from .padding import ZeroPad3d as ZeroPad3d
from .pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from .pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from .pooling import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from .pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from .pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from .pooling import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from .pooling import AvgPool1d as AvgPool1d
from .pooling import AvgPool2d as AvgPool2d
from .pooling import AvgPool3d as AvgPool3d
from .pooling import FractionalMaxPool2d as FractionalMaxPool2d
from .pooling import FractionalMaxPool3d as FractionalMaxPool3d
from .pooling import LPPool1d as LPPool1d
from .pooling import LPPool2d as LPPool2d
from .pooling import LPPool3d as LPPool3d
from .pooling import MaxPool1d as MaxPool1d
from .pooling import MaxPool2d as MaxPool2d
from .pooling import MaxPool3d as MaxPool3d
from .pooling import MaxUnpool1d as MaxUnpool1d
from .pooling import MaxUnpool2d as MaxUnpool2d
from .pooling import MaxUnpool3d as MaxUnpool3d
from .recurrent import GRU as GRU
from .recurrent import LSTM as LSTM
from .recurrent import RNN as RNN
from .recurrent import GRUCell as GRUCell
from .recurrent import LSTMCell as LSTMCell
from .recurrent import RNNCell as RNNCell
from .rotary import RotaryEmbedding as RotaryEmbedding
from .sequential import Sequential as Sequential
from .state_space import S4D as S4D
from .state_space import Mamba as Mamba
from .state_space import selective_scan as selective_scan
from .summary import summary as summary
from .training import ShuffledOrder as ShuffledOrder
from .training import TrainingState as TrainingState
from .transformer import Transformer as Transformer
from .transformer import TransformerDecoder as TransformerDecoder
from .transformer import TransformerDecoderLayer as TransformerDecoderLayer
from .transformer import TransformerEncoder as TransformerEncoder
from .transformer import TransformerEncoderLayer as TransformerEncoderLayer
from .unknown import unknown_layer as _unknown_layer

if not typing.TYPE_CHECKING:  # which takes each name above as exported, and should go on refusing all others
    __all__ = [
        "datasets",
        "formats",
        "functional",
        "init",
        "lora",
        "metrics",
        "optim",
        "quantized",
        "state",
        "utils",
    ]
    __all__ += [name for name, value in globals().items() if callable(value) and not name.startswith("_")]

    def __getattr__(name: str) -> object:
        raise AttributeError(_unknown_layer(name, __all__))
