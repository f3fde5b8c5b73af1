"""`torch.nn.functional` on lazygrad's Tensors: the same functions, with the same arguments in the same order.

Most are methods of Tensor, taken as functions. Written out, in the files beside this one, are those whose
arguments PyTorch orders otherwise than the method does, or whose defaults differ.
"""

from ...tensor import Tensor
from .activation import alpha_dropout as alpha_dropout
from .activation import dropout as dropout
from .activation import feature_alpha_dropout as feature_alpha_dropout
from .activation import gelu as gelu
from .activation import rrelu as rrelu
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

celu = Tensor.celu
elu = Tensor.elu
glu = Tensor.glu
gumbel_softmax = Tensor.gumbel_softmax
hardshrink = Tensor.hardshrink
hardsigmoid = Tensor.hardsigmoid
hardswish = Tensor.hardswish
hardtanh = Tensor.hardtanh
leaky_relu = Tensor.leaky_relu
log_softmax = Tensor.log_softmax
logsigmoid = Tensor.logsigmoid
mish = Tensor.mish
prelu = Tensor.prelu
relu = Tensor.relu
relu6 = Tensor.relu6
selu = Tensor.selu
sigmoid = Tensor.sigmoid
silu = Tensor.silu
softmax = Tensor.softmax
softmin = Tensor.softmin
softshrink = Tensor.softshrink
softsign = Tensor.softsign
tanh = Tensor.tanh
tanhshrink = Tensor.tanhshrink
threshold = Tensor.threshold

# *** windows and images

adaptive_avg_pool1d = Tensor.adaptive_avg_pool1d
adaptive_avg_pool2d = Tensor.adaptive_avg_pool2d
adaptive_avg_pool3d = Tensor.adaptive_avg_pool3d
adaptive_max_pool1d = Tensor.adaptive_max_pool1d
adaptive_max_pool2d = Tensor.adaptive_max_pool2d
adaptive_max_pool3d = Tensor.adaptive_max_pool3d
affine_grid = Tensor.affine_grid
channel_shuffle = Tensor.channel_shuffle
fold = Tensor.fold
grid_sample = Tensor.grid_sample
interpolate = Tensor.interpolate
lp_pool1d = Tensor.lp_pool1d
lp_pool2d = Tensor.lp_pool2d
lp_pool3d = Tensor.lp_pool3d
max_unpool1d = Tensor.max_unpool1d
max_unpool2d = Tensor.max_unpool2d
max_unpool3d = Tensor.max_unpool3d
pad = Tensor.pad
pixel_shuffle = Tensor.pixel_shuffle
pixel_unshuffle = Tensor.pixel_unshuffle
unfold = Tensor.im2col
upsample = Tensor.upsample

# *** normalization, distances, symbols

cosine_similarity = Tensor.cosine_similarity
group_norm = Tensor.group_norm
local_response_norm = Tensor.local_response_norm
normalize = Tensor.normalize
one_hot = Tensor.one_hot
pairwise_distance = Tensor.pairwise_distance

# *** losses

cosine_embedding_loss = Tensor.cosine_embedding_loss
ctc_loss = Tensor.ctc_loss
gaussian_nll_loss = Tensor.gaussian_nll_loss
hinge_embedding_loss = Tensor.hinge_embedding_loss
huber_loss = Tensor.huber_loss
kl_div = Tensor.kl_div
l1_loss = Tensor.l1_loss
margin_ranking_loss = Tensor.margin_ranking_loss
mse_loss = Tensor.mse_loss
multi_margin_loss = Tensor.multi_margin_loss
multilabel_margin_loss = Tensor.multilabel_margin_loss
multilabel_soft_margin_loss = Tensor.multilabel_soft_margin_loss
poisson_nll_loss = Tensor.poisson_nll_loss
smooth_l1_loss = Tensor.smooth_l1_loss
soft_margin_loss = Tensor.soft_margin_loss
triplet_margin_loss = Tensor.triplet_margin_loss
