"""`torch.nn.functional` on lazygrad's Tensors: the same functions, with the same arguments in the same order.

Most are methods of Tensor, taken as functions. Written out, in the files beside this one, are those whose
arguments PyTorch orders otherwise than the method does, or whose defaults differ.
"""

from ...tensor import Tensor
from ...tensor.as_functions import function_of
from ...tensor.trace import check_functions
from .activation import alpha_dropout as alpha_dropout
from .activation import dropout as dropout
from .activation import elu as elu
from .activation import feature_alpha_dropout as feature_alpha_dropout
from .activation import gelu as gelu
from .activation import leaky_relu as leaky_relu
from .activation import relu as relu
from .activation import relu6 as relu6
from .activation import rrelu as rrelu
from .activation import silu as silu
from .activation import softplus as softplus
from .axes import avg_pool1d as avg_pool1d
from .axes import avg_pool2d as avg_pool2d
from .axes import avg_pool3d as avg_pool3d
from .axes import conv1d as conv1d
from .axes import conv2d as conv2d
from .axes import conv3d as conv3d
from .axes import conv_transpose1d as conv_transpose1d
from .axes import conv_transpose2d as conv_transpose2d
from .axes import conv_transpose3d as conv_transpose3d
from .axes import dropout1d as dropout1d
from .axes import dropout2d as dropout2d
from .axes import dropout3d as dropout3d
from .axes import max_pool1d as max_pool1d
from .axes import max_pool2d as max_pool2d
from .axes import max_pool3d as max_pool3d
from .fractional import fractional_max_pool2d as fractional_max_pool2d
from .fractional import fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices
from .fractional import fractional_max_pool3d as fractional_max_pool3d
from .fractional import fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices
from .in_place import alpha_dropout_ as alpha_dropout_
from .in_place import also_in_place as _also_in_place
from .in_place import celu_ as celu_
from .in_place import dropout_ as dropout_
from .in_place import elu_ as elu_
from .in_place import feature_alpha_dropout_ as feature_alpha_dropout_
from .in_place import hardtanh_ as hardtanh_
from .in_place import leaky_relu_ as leaky_relu_
from .in_place import relu_ as relu_
from .in_place import rrelu_ as rrelu_
from .in_place import selu_ as selu_
from .in_place import threshold_ as threshold_
from .lookup import embedding as embedding
from .lookup import embedding_bag as embedding_bag
from .losses import binary_cross_entropy as binary_cross_entropy
from .losses import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from .losses import cross_entropy as cross_entropy
from .losses import nll_loss as nll_loss
from .losses import triplet_margin_with_distance_loss as triplet_margin_with_distance_loss
from .normalization import batch_norm as batch_norm
from .normalization import instance_norm as instance_norm
from .normalization import layer_norm as layer_norm
from .normalization import rms_norm as rms_norm
from .products import bilinear as bilinear
from .products import linear as linear
from .products import scaled_dot_product_attention as scaled_dot_product_attention

# *** activations

celu = _also_in_place(Tensor.celu)
glu = function_of(Tensor.glu)
gumbel_softmax = function_of(Tensor.gumbel_softmax, "logits")
hardshrink = function_of(Tensor.hardshrink)
hardsigmoid = _also_in_place(Tensor.hardsigmoid)
hardswish = _also_in_place(Tensor.hardswish)
hardtanh = _also_in_place(Tensor.hardtanh)
log_softmax = function_of(Tensor.log_softmax)
logsigmoid = function_of(Tensor.logsigmoid)
mish = _also_in_place(Tensor.mish)
prelu = function_of(Tensor.prelu)
selu = _also_in_place(Tensor.selu)
sigmoid = function_of(Tensor.sigmoid)
softmax = function_of(Tensor.softmax)
softmin = function_of(Tensor.softmin)
softshrink = function_of(Tensor.softshrink)
softsign = function_of(Tensor.softsign)
tanh = function_of(Tensor.tanh)
tanhshrink = function_of(Tensor.tanhshrink)
threshold = _also_in_place(Tensor.threshold)

# *** windows and images

adaptive_avg_pool1d = function_of(Tensor.adaptive_avg_pool1d)
adaptive_avg_pool2d = function_of(Tensor.adaptive_avg_pool2d)
adaptive_avg_pool3d = function_of(Tensor.adaptive_avg_pool3d)
adaptive_max_pool1d = function_of(Tensor.adaptive_max_pool1d)
adaptive_max_pool2d = function_of(Tensor.adaptive_max_pool2d)
adaptive_max_pool3d = function_of(Tensor.adaptive_max_pool3d)
affine_grid = function_of(Tensor.affine_grid, "theta")
channel_shuffle = function_of(Tensor.channel_shuffle)
fold = function_of(Tensor.fold)
grid_sample = function_of(Tensor.grid_sample)
interpolate = function_of(Tensor.interpolate)
lp_pool1d = function_of(Tensor.lp_pool1d)
lp_pool2d = function_of(Tensor.lp_pool2d)
lp_pool3d = function_of(Tensor.lp_pool3d)
max_unpool1d = function_of(Tensor.max_unpool1d)
max_unpool2d = function_of(Tensor.max_unpool2d)
max_unpool3d = function_of(Tensor.max_unpool3d)
pad = function_of(Tensor.pad, padding="pad")
pixel_shuffle = function_of(Tensor.pixel_shuffle)
pixel_unshuffle = function_of(Tensor.pixel_unshuffle)
unfold = function_of(Tensor.im2col)
upsample = function_of(Tensor.upsample)

# *** normalization, distances, symbols

cosine_similarity = function_of(Tensor.cosine_similarity, "x1")
group_norm = function_of(Tensor.group_norm)
local_response_norm = function_of(Tensor.local_response_norm)
normalize = function_of(Tensor.normalize)
one_hot = function_of(Tensor.one_hot)
pairwise_distance = function_of(Tensor.pairwise_distance, "x1")

# *** losses

cosine_embedding_loss = function_of(Tensor.cosine_embedding_loss, "input1")
ctc_loss = function_of(Tensor.ctc_loss, "log_probs")
gaussian_nll_loss = function_of(Tensor.gaussian_nll_loss)
hinge_embedding_loss = function_of(Tensor.hinge_embedding_loss)
huber_loss = function_of(Tensor.huber_loss)
kl_div = function_of(Tensor.kl_div)
l1_loss = function_of(Tensor.l1_loss)
margin_ranking_loss = function_of(Tensor.margin_ranking_loss, "input1")
mse_loss = function_of(Tensor.mse_loss)
multi_margin_loss = function_of(Tensor.multi_margin_loss)
multilabel_margin_loss = function_of(Tensor.multilabel_margin_loss)
multilabel_soft_margin_loss = function_of(Tensor.multilabel_soft_margin_loss)
poisson_nll_loss = function_of(Tensor.poisson_nll_loss)
smooth_l1_loss = function_of(Tensor.smooth_l1_loss)
soft_margin_loss = function_of(Tensor.soft_margin_loss)
triplet_margin_loss = function_of(Tensor.triplet_margin_loss, "anchor")

check_functions(globals())
