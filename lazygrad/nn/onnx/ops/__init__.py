"""The rows of the table, a file for each family. Importing this fills the table."""

from . import attention as attention
from . import casting as casting
from . import control as control
from . import convolution as convolution
from . import elementwise as elementwise
from . import host as host
from . import indexing as indexing
from . import losses as losses
from . import microsoft as microsoft
from . import microsoft_attention as microsoft_attention
from . import microsoft_quantized as microsoft_quantized
from . import normalization as normalization
from . import pooling as pooling
from . import products as products
from . import quantization as quantization
from . import random as random
from . import recurrent as recurrent
from . import reduce as reduce
from . import resize as resize
from . import sequences as sequences
from . import shape as shape
from . import signal as signal
from . import sparse as sparse
from . import training as training
from . import vision as vision
