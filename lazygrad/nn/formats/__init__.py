"""Files of weights, a reader for each format: what comes in is a path, what goes out are tensors by name.

Nothing of a file is executed, and a tensor's bytes are read when it is needed, straight into its device.
"""

from .content import ONNX as ONNX
from .content import format_of as format_of
from .folders import file_of as file_of
from .folders import load_weights as load_weights
from .folders import read_index as read_index
from .folders import read_split_gguf as read_split_gguf
from .folders import write_sharded as write_sharded
from .gguf import read_gguf as read_gguf
from .npy import read_npy as read_npy
from .npy import read_npz as read_npz
from .safetensors import read_safetensors as read_safetensors
from .safetensors import write_safetensors as write_safetensors
from .source import FileFormatError as FileFormatError
from .torch_files import read_torch as read_torch
from .weights import Weights as Weights
