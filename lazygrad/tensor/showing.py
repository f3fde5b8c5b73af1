"""A tensor shown with its values: in notebooks, and in `repr` for those who ask (`set_printoptions`)."""

from __future__ import annotations

import binascii
import sys
from typing import Any

from ..device import Device
from ..dtype import dtypes
from ..shape.sizes import shape_text
from .face import Tensor
from .observer import observing
from .pictures import image_shape, pixels, png
from .print_options import PrintOptions, printing
from .same_device import devices_text

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
#: Columns of a small picture on the screen.
WIDE = 128


class Showing(Tensor):
    """What a person sees of a tensor."""

    def _repr_html_(self) -> str:
        """For notebooks: shape, dtype, device and values, and a picture where it is an image."""
        facts = [shape_text(self.shape), str(self.dtype), devices_text(self.device)]
        if self.requires_grad:
            facts.append("requires_grad")
        parts = [f"<div><b>{_escaped(type(self).__name__)}</b> {_escaped(' · '.join(facts))}</div>"]
        try:
            _refuse_in_capture()
            picture = self._picture()
            values = self._values_text(printing.options)
        except Exception as error:  # a tensor that cannot be computed is shown all the same
            kind = type(error).__name__
            values, picture = f"its values cannot be computed: {kind}: {error}", ""
        return "".join([*parts, picture, f"<pre>{_escaped(values)}</pre>"])

    def _repr_with_values(self) -> str:
        """`Tensor([1.0, 2.0], dtype=float, device=CPU)`; the form without values where there are none."""
        name = type(self).__name__
        try:
            _refuse_in_capture()
            values = self._values_text(printing.options, before=f"{name}(")
        except Exception as error:
            return f"<{name} {shape_text(self.shape)} {self.dtype}: {type(error).__name__}: {error}>"
        facts = [f"dtype={str(self.dtype).removeprefix('dtypes.')}", f"device={devices_text(self.device)}"]
        if self._is_cut(printing.options) or 0 in self.shape:
            facts.insert(0, f"shape={shape_text(self.shape)}")
        facts += ["requires_grad=True"] if self.requires_grad else []
        return f"{name}({values}, {', '.join(facts)})"

    def _is_cut(self, options: PrintOptions) -> bool:
        return self._static_numel() > options.threshold

    def _values_text(self, options: PrintOptions, before: str = "") -> str:
        """The values as numpy prints them; of many the edges of each axis."""
        import numpy as np

        self.realize()
        cut = self._is_cut(options)
        array = (self._edges(options.edgeitems) if cut else self.detach()).numpy()
        return np.array2string(
            array,
            max_line_width=options.linewidth,
            precision=options.precision,
            separator=", ",
            prefix=before,
            threshold=0 if cut else sys.maxsize,
            edgeitems=options.edgeitems,
        )

    def _edges(self, count: int) -> Tensor:
        """What is printed of a large tensor, and one element more of each axis, which becomes the dots."""
        x: Tensor = self.detach()
        for axis, size in enumerate(self.shape):
            if not isinstance(size, int) or size <= 2 * count + 1:
                continue
            first = x._window(axis, 0, count + 1)
            last = x._window(axis, size - count, size)
            if not isinstance(x.device, tuple) and not Device.runs_kernels(x.device):  # a file
                first, last = first.to("CPU"), last.to("CPU")
            x = first.cat(last, dim=axis)
        return x

    def _picture(self) -> str:
        """An image as HTML; nothing where the tensor is none."""
        if image_shape(self.shape) is None or not (dtypes.is_float(self.dtype) or self.dtype is dtypes.uint8):
            return ""
        image = pixels(self.detach().realize().numpy())
        if image is None:
            return ""
        wide = max(image.shape[1], WIDE)
        data = binascii.b2a_base64(png(image), newline=False).decode("ascii")
        style = f"width: {wide}px; image-rendering: pixelated"
        return f'<img alt="the tensor as an image" style="{style}" src="data:image/png;base64,{data}">'


def _refuse_in_capture() -> None:
    """To be looked at is no part of what a function does."""
    if observing.by is not None:
        raise RuntimeError("a jit captures, and nothing is computed to be looked at")


def _escaped(text: Any) -> str:
    return str(text).translate(_ESCAPES)
