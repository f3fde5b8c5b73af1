"""State dicts name the tensors of any object; safetensors files keep them, and damaged files are refused."""

from __future__ import annotations

import json
import struct
from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazygrad import Tensor, dtypes, nn
from lazygrad.device import DeviceError
from lazygrad.nn.state import (
    get_parameters,
    get_state_dict,
    load_state_dict,
    safe_load,
    safe_load_metadata,
    safe_save,
)
from tests.helpers import needs, require

# ---- names ----


def test_names_are_paths():
    Pair = namedtuple("Pair", "left right")

    @dataclass
    class Record:
        weight: Tensor
        text: str = "no tensor"

    class Slots:
        __slots__ = ("absent", "present")

        def __init__(self):
            self.present = Tensor([1.0])

    class Model:
        def __init__(self):
            self.plain = Tensor([1.0])
            self.listed = [nn.Linear(1, 1, bias=False), (Tensor([2.0]), None, 3)]
            self.named = OrderedDict(a=Tensor([1.0]), b={"c": Tensor([1.0])})
            self.pair = Pair(Tensor([1.0]), Tensor([2.0]))
            self.record = Record(Tensor([1.0]))
            self.slots = Slots()
            self.code = [Tensor.relu, lambda x: x, Model, np]
            self.whole = self

    names = (
        "plain listed.0.weight listed.1.0 named.a named.b.c pair.left pair.right record.weight slots.present"
    )
    assert list(get_state_dict(Model())) == names.split()
    assert list(get_state_dict(Record(Tensor([1.0])), "x.y")) == ["x.y.weight"]


def test_a_tensor_by_itself_has_its_prefix_as_a_name():
    t = Tensor([1.0])
    assert get_state_dict(t, "t") == {"t": t}


def test_two_tensors_of_one_name_are_refused():
    with pytest.raises(ValueError, match=r"two tensors of the model have the name 'a\.b'"):
        get_state_dict({"a.b": Tensor([1.0]), "a": {"b": Tensor([2.0])}})


def test_a_shared_tensor_has_two_names_and_is_one_parameter():
    tied = nn.Embedding(3, 2)
    model = [tied, tied.weight]
    assert list(get_state_dict(model)) == ["0.weight", "1"]
    assert get_parameters(model) == [tied.weight]


def test_parameters_are_what_requires_a_gradient():
    norm = nn.BatchNorm(2)
    assert [t is p for t, p in zip(get_parameters(norm), [norm.weight, norm.bias], strict=True)] == [
        True,
        True,
    ]


def test_a_deep_model_needs_no_deep_stack():
    deep = Tensor([1.0])
    for _ in range(5000):
        deep = [deep]
    assert len(get_state_dict(deep)) == 1


# ---- loading ----


def test_loading_writes_in_place():
    model = nn.Linear(3, 2)
    view = model.weight.detach().realize()[0]
    state = {"weight": Tensor([[1.0, 2, 3], [4, 5, 6]]), "bias": Tensor([7.0, 8])}
    load_state_dict(model, state)
    assert model.weight.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert view.tolist() == [1, 2, 3]
    assert model.weight.requires_grad
    assert model.bias.tolist() == [7, 8]
    assert state["bias"].tolist() == [7, 8]
    model.weight.assign(model.weight.detach() * 2)
    assert state["weight"].tolist() == [[1, 2, 3], [4, 5, 6]], "the state dict keeps its own memory"


def test_loading_into_a_model_that_never_ran():
    model = nn.Linear(2, 2, bias=False)
    load_state_dict(model, {"weight": Tensor([[1.0, 2], [3, 4]])})
    assert model(Tensor([[1.0, 1]])).tolist() == [[3, 7]]


def test_names_that_only_one_side_has(capsys):
    model, state = nn.Linear(1, 2), {"weight": Tensor([[1.0], [2.0]]), "extra": Tensor([1.0])}
    message = r"the state dict lacks bias; the model has no extra"
    with pytest.raises(ValueError, match=message + r" \(strict=False loads what both have\)"):
        load_state_dict(model, state)
    before = model.bias.tolist()
    load_state_dict(model, state, strict=False)
    assert message in capsys.readouterr().err
    assert model.weight.tolist() == [[1], [2]]
    assert model.bias.tolist() == before
    load_state_dict(model, state, strict=False, verbose=False)
    assert capsys.readouterr().err == ""


def test_names_of_a_file_are_no_text_for_a_terminal():
    with pytest.raises(ValueError, match=r"the model has no '\\x1b\[2J', n{97}\.\.\. \(strict"):
        load_state_dict({}, {"\x1b[2J": Tensor([1.0]), "n" * 200: Tensor([1.0])})


def test_consume_takes_the_tensors_out():
    model = nn.Linear(2, 2)
    state = {name: t.detach() + 1 for name, t in get_state_dict(model).items()}
    load_state_dict(model, state, consume=True)
    assert state == {}


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (Tensor([1.0]), ValueError, r"bias: the model has shape \(2,\), the state dict \(1,\)"),
        (Tensor([1, 2]), TypeError, "bias: the model has dtypes.float, the state dict dtypes.int; cast one"),
        (
            Tensor([1.0, 2], device="PYTHON"),
            ValueError,
            r"bias: the model is on \w+, the state dict on PYTHON; move one of them with .to\(\)",
        ),
        (
            [1.0, 2.0],
            TypeError,
            r"bias: a state dict holds Tensors, not list; Tensor\(value.numpy",
        ),
    ],
    ids=["shape", "dtype", "device", "type"],
)
def test_what_does_not_fit_is_named_and_nothing_is_written(value, error, message):
    model = nn.Linear(1, 2)
    before = model.weight.tolist()
    with pytest.raises(error, match=message):
        load_state_dict(model, {"weight": Tensor([[5.0], [6.0]]), "bias": value})
    assert model.weight.tolist() == before


# ---- files ----

ALL_DTYPES = (
    "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 fp8e4m3 fp8e5m2"
)


@pytest.mark.parametrize("dtype", ALL_DTYPES.split())
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 4)], ids=str)
def test_every_dtype_comes_back_to_the_bit(tmp_path, dtype, shape):
    kind = getattr(dtypes, dtype)
    count = int(np.prod(shape))
    t = (
        Tensor.arange(count).reshape(shape) % 2 if dtype == "bool" else Tensor.arange(count).reshape(shape)
    ).cast(kind)
    safe_save({"before": Tensor([True]), "t": t}, tmp_path / "file.safetensors")
    loaded = safe_load(tmp_path / "file.safetensors")["t"]
    assert loaded.shape == shape
    assert loaded.dtype is kind
    np.testing.assert_array_equal(loaded.to("CPU").numpy(), t.numpy())


def test_loading_reads_nothing_until_it_is_asked_for(tmp_path):
    file = tmp_path / "file.safetensors"
    safe_save({"a": Tensor([1.0, 2.0]), "b": Tensor([[3, 4]])}, file)
    loaded = safe_load(str(file))
    assert all(t.device == f"DISK:{file}" for t in loaded.values())
    assert loaded["a"].numpy().tolist() == [1, 2]
    assert (loaded["b"].to("CPU") + 1).tolist() == [[4, 5]]
    file.unlink()
    again = loaded["a"].to("CPU")
    with pytest.raises(DeviceError, match=r"cannot read .*file\.safetensors: No such file"):
        again.realize()


def test_a_model_goes_through_a_file(tmp_path):
    def model():
        return [nn.Conv2d(1, 2, 3), nn.BatchNorm(2), nn.Linear(4, 3)]

    first, second = model(), model()
    safe_save(get_state_dict(first), tmp_path / "model.safetensors", {"epoch": "3"})
    load_state_dict(second, safe_load(tmp_path / "model.safetensors"))
    for name, t in get_state_dict(first).items():
        np.testing.assert_array_equal(get_state_dict(second)[name].numpy(), t.numpy())
    assert safe_load_metadata(tmp_path / "model.safetensors") == {"epoch": "3"}
    # and once more, from one file to another
    safe_save(safe_load(tmp_path / "model.safetensors"), tmp_path / "copy.safetensors")
    assert safe_load_metadata(tmp_path / "copy.safetensors") == {}
    assert set(safe_load(tmp_path / "copy.safetensors")) == set(get_state_dict(first))


@needs("torch")
def test_pytorch_reads_and_writes_the_same_files(tmp_path):
    torch = require("torch")
    from safetensors.torch import load_file, save_file

    safe_save(
        {"w": Tensor([[1.5, -2.0]], dtype=dtypes.bfloat16), "n": Tensor([3], dtype=dtypes.int64)},
        tmp_path / "a",
    )
    theirs = load_file(tmp_path / "a")
    assert theirs["w"].dtype is torch.bfloat16
    assert theirs["w"].tolist() == [[1.5, -2.0]]
    save_file({"w": torch.tensor([1.5, 3e38], dtype=torch.bfloat16), "e": torch.zeros(0, 2)}, tmp_path / "b")
    ours = safe_load(tmp_path / "b")
    assert ours["w"].dtype is dtypes.bfloat16
    assert ours["e"].shape == (0, 2)
    np.testing.assert_array_equal(ours["w"].to("CPU").numpy(), load_file(tmp_path / "b")["w"].float().numpy())


def test_an_interrupted_save_keeps_the_old_file(tmp_path):
    file = tmp_path / "model.safetensors"
    safe_save({"a": Tensor([1.0])}, file)
    (tmp_path / "gone").write_bytes(bytes(4))
    later = Tensor(tmp_path / "gone").bitcast(dtypes.float32)
    (tmp_path / "gone").unlink()
    with pytest.raises(DeviceError, match=r"cannot read .*gone"):
        safe_save({"a": Tensor([2.0]), "b": later}, file)  # fails when a is written
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
    assert safe_load(file)["a"].numpy().tolist() == [1.0]


def test_what_cannot_be_saved_is_named(tmp_path):
    with pytest.raises(TypeError, match="w: only Tensors can be saved, not ndarray"):
        safe_save({"w": np.zeros(3)}, tmp_path / "x")
    with pytest.raises(TypeError, match="the names of tensors must be strings, not 3"):
        safe_save({3: Tensor([1.0])}, tmp_path / "x")
    with pytest.raises(TypeError, match="metadata must be strings, not 'epoch': 3"):
        safe_save({}, tmp_path / "x", {"epoch": 3})
    assert not list(tmp_path.iterdir())


# ---- damaged and hostile files ----


def file_of(header, data=b"", size=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


HOSTILE = {
    "empty": b"",
    "short": b"\x08\0\0",
    "no header": file_of(b"", size=100),
    "huge header": file_of({}, size=1 << 63),
    "no json": file_of(b"{]"),
    "a list": file_of([1, 2]),
    "deep": file_of(b'{"a":' * 100_000),
    "bad utf-8": file_of(b'{"\xff": 1}'),
    "truncated data": file_of({"a": entry()}, b"\0" * 7),
    "data behind": file_of({"a": entry()}, b"\0" * 9),
    "outside": file_of({"a": entry(offsets=(1 << 40, (1 << 40) + 8))}, b"\0" * 8),
    "backwards": file_of({"a": entry(offsets=(8, 0))}, b"\0" * 8),
    "negative": file_of({"a": entry(offsets=(-8, 0))}, b"\0" * 8),
    "wrong size": file_of({"a": entry(shape=(3,))}, b"\0" * 8),
    "overflow": file_of({"a": entry(shape=(1 << 62, 1 << 62))}, b"\0" * 8),
    "negative shape": file_of({"a": entry(shape=(-1, -2))}, b"\0" * 8),
    "overlap": file_of({"a": entry(), "b": entry()}, b"\0" * 8),
    "hole": file_of({"a": entry(), "b": entry(offsets=(16, 24))}, b"\0" * 24),
    "a name twice": file_of(
        b'{"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, "a": {"dtype": "U8", "shape": [1], '
        b'"data_offsets": [0, 1]}}',
        b"\0",
    ),
    "no shape": file_of({"a": {"dtype": "F32", "data_offsets": [0, 8]}}, b"\0" * 8),
    "texts that are none": file_of({"__metadata__": {"a": 1}}),
    "a number of 5000 digits": file_of(b'{"a": ' + b"9" * 5000 + b"}"),
    "a fraction": file_of({"a": entry(shape=(2.0,))}, b"\0" * 8),
    "65 axes": file_of({"a": entry(shape=(1,) * 65, offsets=(0, 4))}, b"\0" * 4),
    "unknown dtype": file_of({"a": entry(dtype="F7")}, b"\0" * 8),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_damaged_files_are_refused(name, tmp_path):
    (tmp_path / "x.safetensors").write_bytes(HOSTILE[name])
    with pytest.raises(ValueError, match=r"x\.safetensors is not a safetensors file, or is damaged: "):
        safe_load(tmp_path / "x.safetensors")


def test_a_dtype_that_lazygrad_lacks_is_named(tmp_path):
    (tmp_path / "x").write_bytes(file_of({"a": entry(dtype="C64", shape=(1,))}, b"\0" * 8))
    with pytest.raises(NotImplementedError, match="tensor a has dtype C64"):
        safe_load(tmp_path / "x")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*x"):
        safe_load(tmp_path / "x")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_file_with_any_bytes_changed_is_read_within_its_bounds_or_refused(tmp_path_factory, data):
    whole = file_of({"a": entry(), "b": entry("I32", (1, 2), (8, 16))}, bytes(range(16)))
    position = data.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[position : position + 2] = data.draw(st.binary(min_size=0, max_size=3))
    path = tmp_path_factory.mktemp("fuzz") / "x"
    path.write_bytes(changed)
    try:
        loaded = safe_load(path)
    except (ValueError, NotImplementedError):
        return
    for t in loaded.values():
        assert t.to("CPU").numpy().shape == t.shape


def test_what_is_no_dict_or_folder_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere to write x into"):
        safe_save({"a": Tensor([1])}, tmp_path / "nowhere" / "x")
    with pytest.raises(TypeError, match="saved by name, from a dict, not from a list"):
        safe_save([Tensor([1])], tmp_path / "x")
    with pytest.raises(TypeError, match="a state dict must be a dict of Tensors by name, not a int"):
        load_state_dict({}, 3)
