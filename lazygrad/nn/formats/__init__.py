"""Files of weights, a reader for each format: what comes in is a path, what goes out are tensors by name.

Nothing of a file is executed, and a tensor's bytes are read when it is needed, straight into its device.
"""

from .gguf import read_gguf as read_gguf
from .source import FileFormatError as FileFormatError
from .weights import Weights as Weights
