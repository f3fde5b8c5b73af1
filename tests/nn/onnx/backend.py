"""The cases that the `onnx` package brings: what they are, how one is run. `python -m tests.nn.onnx.backend`
prints the table of docs/onnx.md."""

from __future__ import annotations

import collections
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from lazygrad import Tensor
from lazygrad.nn.onnx import OnnxRunner

#: Texts and encoded pictures: no numbers go in, or none come out.
NOT_NUMERIC = {"ImageDecoder", "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"}
#: Domains that are not ONNX's own operations.
OTHER_DOMAINS = {"ai.onnx.ml", "ai.onnx.preview"}

_RANDOM = "the numbers drawn are numpy's own"
_BFLOAT16 = (
    "the expected bfloat16 are rounded after every step, ours once at the end: one unit in the last place"
)
_NOISE = "expected are zeros that came out as 2e-7, and the tolerance at zero is 1e-7"

#: The numeric cases that are not equal, each with its reason. A case that has come to be equal is reported.
KNOWN = {
    **dict.fromkeys(["test_bernoulli", "test_bernoulli_double", "test_bernoulli_seed"], _RANDOM),
    **dict.fromkeys(["test_training_dropout", "test_training_dropout_mask"], _RANDOM),
    **dict.fromkeys(["test_training_dropout_default", "test_training_dropout_default_mask"], _RANDOM),
    **dict.fromkeys(["test_dft_inverse", "test_dft_inverse_opset19"], _NOISE),
    "test_attention_3d_causal_bf16": _BFLOAT16,
    "test_attention_4d_causal_bf16": _BFLOAT16,
    "test_attention_4d_causal_padded_kv_bf16": _BFLOAT16,
    "test_attention_4d_padded_kv_bf16": _BFLOAT16,
}


class Case(NamedTuple):
    """One case: a model, what goes in and what shall come out, as arrays or lists of them."""

    name: str
    op: str
    domain: str
    model: Any
    data: list[tuple[list[Any], list[Any]]]
    rtol: float
    atol: float


def node_cases(expanded: bool = False) -> Iterator[Case]:
    """A case for each use of an operation; `expanded` are those where an operation is written as others."""
    import onnx.backend.test.loader

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = onnx.backend.test.loader.load_model_tests(kind="node")
    for case in found:
        node = case.model.graph.node[0]
        if ("_expanded" in case.name) == expanded:
            data = [(_plain(ins), _plain(outs)) for ins, outs in case.data_sets]
            yield Case(case.name, node.op_type, node.domain, case.model, data, case.rtol, case.atol)


def file_cases(kind: str) -> Iterator[Case]:
    """Cases of whole small models that lie in files: "simple", "pytorch-operator", "pytorch-converted"."""
    import onnx.backend.test.loader

    for case in onnx.backend.test.loader.load_model_tests(kind=kind):
        model = onnx.load(os.path.join(case.model_dir, "model.onnx"))
        data = []
        number = 0
        while os.path.isdir(folder := os.path.join(case.model_dir, f"test_data_set_{number}")):
            ins = [_from_file(folder, "input", n, value.type) for n, value in enumerate(model.graph.input)]
            outs = [_from_file(folder, "output", n, value.type) for n, value in enumerate(model.graph.output)]
            data.append(([v for v in ins if v is not _ABSENT], outs))
            number += 1
        yield Case(case.name, kind, "", model, data, case.rtol, case.atol)


_ABSENT = object()


def _from_file(folder: str, kind: str, number: int, what: Any) -> Any:
    import onnx

    path = os.path.join(folder, f"{kind}_{number}.pb")
    if not os.path.exists(path):
        return _ABSENT
    proto = {
        "tensor_type": onnx.TensorProto,
        "sequence_type": onnx.SequenceProto,
        "optional_type": onnx.OptionalProto,
    }[what.WhichOneof("value")]()
    with open(path, "rb") as file:
        proto.ParseFromString(file.read())
    return _plain(proto)


def _plain(value: Any) -> Any:
    import onnx

    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return onnx.numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return onnx.numpy_helper.to_optional(value)
    return [_plain(part) for part in value] if isinstance(value, (list, tuple)) else value


def run(case: Case) -> None:
    """AssertionError where a result is another, else the error of the runner."""
    runner = OnnxRunner(case.model)
    for inputs, expected in case.data:
        names = [value.name for value in case.model.graph.input]
        results = runner(dict(zip(names, inputs, strict=False)))
        assert len(results) == len(expected)
        for result, wanted in zip(results.values(), expected, strict=True):
            same(result, wanted, case)


def same(result: Any, wanted: Any, case: Case) -> None:
    if isinstance(wanted, list):
        assert isinstance(result, list)
        assert len(result) == len(wanted)
        for one, other in zip(result, wanted, strict=True):
            same(one, other, case)
        return
    if wanted is None:
        assert result is None
        return
    got = result.numpy() if isinstance(result, Tensor) else np.asarray(result)
    wanted = np.asarray(wanted)
    assert got.shape == wanted.shape
    if wanted.dtype.kind in "OU":
        assert got.astype(str).tolist() == wanted.astype(str).tolist()
        return
    if type(wanted.dtype) in _OWN_TYPES:
        assert got.dtype == wanted.dtype
    # Others are carried in a wider type: 4-bit integers in 8 bits, bfloat16 and the 8-bit floats in float32.
    wide = (
        np.float64 if wanted.dtype.kind == "f" else np.float32 if wanted.dtype.kind == "V" else wanted.dtype
    )
    np.testing.assert_allclose(got.astype(wide), wanted.astype(wide), case.rtol, case.atol)


_OWN_TYPES = {type(np.dtype(name)) for name in ("bool", "float16", "float32", "float64")}
_OWN_TYPES |= {type(np.dtype(f"{sign}int{bits}")) for sign in ("", "u") for bits in (8, 16, 32, 64)}


def is_numeric(case: Case) -> bool:
    return case.op not in NOT_NUMERIC and case.domain not in OTHER_DOMAINS


def failures(
    cases: Iterator[Case],
) -> tuple[dict[str, str], collections.Counter[str], collections.Counter[str]]:
    """Name → why, of those that fail; how many there are of each operation, and how many are equal."""
    failed, all_of, good = dict[str, str](), collections.Counter[str](), collections.Counter[str]()
    for case in cases:
        all_of[case.op] += 1
        try:
            run(case)
            good[case.op] += 1
        except Exception as error:
            failed[case.name] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return failed, all_of, good


if __name__ == "__main__":
    failed, all_of, good = failures(case for case in node_cases() if is_numeric(case))
    print(f"{good.total()} of {all_of.total()} cases of {len(all_of)} operations are equal.\n")
    for op in sorted(all_of):
        print(f"| {op} | {good[op]} of {all_of[op]} |")
    for name, why in failed.items():
        print(name, why, file=sys.stderr)
