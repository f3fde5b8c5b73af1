"""OnnxRunner: what it takes and gives, what it refuses, when it captures, what the host works out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazygrad import Context, Tensor, dtypes
from lazygrad.device import GlobalCounters
from tests.helpers import needs, require

pytestmark = needs("onnx")


def runner(*args, **kwargs):
    from lazygrad.nn.onnx import OnnxRunner

    return OnnxRunner(*args, **kwargs)


def model(nodes, inputs, outputs, constants=None, opset=18, **more):
    """A model of nodes (op, inputs, outputs, attributes); inputs and outputs are name → (type, shape)."""
    onnx = require("onnx")
    helper = onnx.helper
    made = [helper.make_node(op, i.split(), o.split(), **attributes) for op, i, o, attributes in nodes]

    def infos(values):
        return [
            helper.make_tensor_value_info(name, getattr(onnx.TensorProto, kind), shape)
            for name, (kind, shape) in values.items()
        ]

    tensors = [onnx.numpy_helper.from_array(np.asarray(v), name) for name, v in (constants or {}).items()]
    graph = helper.make_graph(made, "graph", infos(inputs), infos(outputs), tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **more)


DOUBLE = ([("Add", "x x", "y", {})], {"x": ("FLOAT", ["n"])}, {"y": ("FLOAT", ["n"])})

# ---- what goes in and comes out ----


def test_a_dict_of_arrays_gives_a_dict_of_tensors():
    run = runner(model(*DOUBLE))
    out = run({"x": np.array([1, 2], np.float32)})
    assert list(out) == ["y"]
    assert isinstance(out["y"], Tensor)
    assert out["y"].tolist() == [2.0, 4.0]
    assert run(x=[3.0])["y"].tolist() == [6.0]
    assert run(x=Tensor([4.0]))["y"].tolist() == [8.0]


def test_what_a_file_says():
    run = runner(model(*DOUBLE))
    assert run.inputs["x"] == ("x", dtypes.float32, ("n",))
    assert run.outputs["y"].shape == ("n",)
    assert run.opset == {"": 18}
    assert repr(run) == "<OnnxRunner (x) -> (y)>"


def test_a_value_is_given_in_the_place_of_the_files():
    nodes = [("Mul", "x w", "m", {}), ("Reshape", "m s", "y", {})]
    inputs = {"x": ("FLOAT", [4]), "w": ("FLOAT", [4]), "s": ("INT64", [2])}
    run = runner(model(nodes, inputs, {"y": ("FLOAT", None)}, {"w": np.full(4, 2, np.float32), "s": [2, 2]}))
    x = np.arange(4, dtype=np.float32)
    for _ in range(4):
        assert run(x=x)["y"].tolist() == [[0.0, 2.0], [4.0, 6.0]]
        assert run(x=x, w=x)["y"].tolist() == [[0.0, 1.0], [4.0, 9.0]]
        assert run(x=x, s=[4, 1], w=x + 1)["y"].tolist() == [[0.0], [2.0], [6.0], [12.0]]
        assert run(x=x, s=[1, 4])["y"].tolist() == [[0.0, 2.0, 4.0, 6.0]]


def test_bytes_and_paths(tmp_path):
    made = model(*DOUBLE).SerializeToString()
    (tmp_path / "double.onnx").write_bytes(made)
    for source in (made, tmp_path / "double.onnx", str(tmp_path / "double.onnx")):
        assert runner(source)(x=[1.0])["y"].tolist() == [2.0]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({}, ValueError, "the model's input x is missing"),
        ({"x": [1.0], "z": 1}, ValueError, "no input 'z', only x"),
        ({"x": np.ones(2)}, TypeError, "the input 'x' must be float, not double; cast it first"),
        ({"x": np.ones((2, 2), np.float32)}, ValueError, r"the input 'x' has the shape \(n\), not \(2, 2\)"),
        ({"x": "text"}, TypeError, "the input 'x' takes a tensor, an array or nested lists"),
    ],
)
def test_arguments_are_checked(given, error, message):
    with pytest.raises(error, match=message):
        runner(model(*DOUBLE))(given)


def test_a_result_is_never_written_again():
    run = runner(model([("Reshape", "x s", "y", {})], *DOUBLE[1:], {"s": [-1]}))
    given = np.array([1, 2], np.float32)
    first = run(x=given)["y"]
    given[:] = 5
    later = [run(x=given + n)["y"] for n in range(4)]
    assert first.tolist() == [1.0, 2.0]
    assert [t.tolist()[0] for t in later] == [5.0, 6.0, 7.0, 8.0]


def test_every_operation_of_several_results_gives_them():
    """However often the method behind it has been called."""
    pools = [("MaxPool", "x", f"y{n} i{n}", {"kernel_shape": [2]}) for n in range(6)]
    outputs = {f"i{n}": ("INT64", None) for n in range(6)}
    run = runner(model(pools, {"x": ("FLOAT", [1, 1, 3])}, outputs))
    found = run(x=np.array([[[3, 1, 2]]], np.float32))
    assert [each.tolist() for each in found.values()] == [[[[0, 2]]]] * 6


def test_an_error_says_at_which_node():
    run = runner(model([("MatMul", "x x", "y", {})], {"x": ("FLOAT", None)}, {"y": ("FLOAT", None)}))
    with pytest.raises(ValueError, match=r"MatMul that makes 'y' of \(float\[2, 3\], float\[2, 3\]\)"):
        run(x=np.ones((2, 3), np.float32))


# ---- captures ----


def test_the_third_call_replays():
    run = runner(model(*DOUBLE))
    for number in range(2):
        run(x=[float(number)])
    (part,) = run._segments[frozenset()].segments
    (captured,) = part._captures.values()
    assert captured._jit.captured is not None
    assert run(x=[7.0])["y"].tolist() == [14.0]


def test_shapes_are_worked_out_on_the_host():
    """Shape, Gather, Mul, Concat, Reshape: one kernel runs, for the addition."""
    nodes = [
        ("Shape", "x", "shape", {}),
        ("Gather", "shape zero", "n", {}),
        ("Mul", "n two", "m", {}),
        ("Concat", "m minus", "to", {"axis": 0}),
        ("Add", "x x", "twice", {}),
        ("Reshape", "twice to", "y", {}),
    ]
    constants = {"zero": [0], "two": [2], "minus": [-1]}
    run = runner(model(nodes, {"x": ("FLOAT", ["n", 4])}, {"y": ("FLOAT", None)}, constants))
    run(x=np.ones((3, 4), np.float32))
    GlobalCounters.reset()
    assert run(x=np.ones((3, 4), np.float32))["y"].shape == (6, 2)
    assert GlobalCounters.kernel_count == 1


def test_weights_are_folded_once():
    run = runner(
        model([("Exp", "w", "e", {}), ("Mul", "x e", "y", {})], *DOUBLE[1:], {"w": np.zeros(2, np.float32)})
    )
    assert run(x=[3.0, 4.0])["y"].tolist() == [3.0, 4.0]
    assert [node.op_type for node in run._graph.nodes] == ["Mul"]


def branches():
    """if flag > 2: x + x, else x * x."""
    onnx = require("onnx")
    helper = onnx.helper
    inner = {}
    for op in ("Add", "Mul"):
        out = helper.make_tensor_value_info(op, onnx.TensorProto.FLOAT, ["n"])
        inner[op] = helper.make_graph([helper.make_node(op, ["x", "x"], [op])], op, [], [out])
    return [
        ("Greater", "flag two", "more", {}),
        ("If", "more", "y", {"then_branch": inner["Add"], "else_branch": inner["Mul"]}),
    ]


def test_a_small_input_that_steers_is_read_on_the_host():
    inputs = {"x": ("FLOAT", ["n"]), "flag": ("INT64", [])}
    run = runner(model(branches(), inputs, {"y": ("FLOAT", ["n"])}, {"two": np.int64(2)}))
    for flag, expected in [(3, 10.0), (1, 25.0)] * 3:
        assert run(x=[5.0], flag=flag)["y"].tolist() == [expected]
    assert run._steering == {"flag"}
    assert not run._barriers
    (part,) = run._segments[frozenset()].segments
    assert len(part._captures) == 2


def test_data_that_steer_end_a_part(capsys):
    nodes = [("ReduceSum", "x", "flag", {"keepdims": 0}), *branches(), ("Neg", "y", "z", {})]
    run = runner(model(nodes, {"x": ("FLOAT", ["n"])}, {"z": ("FLOAT", ["n"])}, {"two": np.float32(2)}))
    with Context(DEBUG=1):
        results = [run(x=[value])["z"].tolist() for value in (5.0, 1.0, 5.0, 1.0, 5.0)]
    assert results == [[-10.0], [-1.0]] * 2 + [[-10.0]]
    assert len(run._segments[frozenset()].segments) == 3
    assert capsys.readouterr().out.count("needs the value of 'more'") == 1


def test_random_numbers_differ_from_call_to_call():
    run = runner(model([("RandomNormalLike", "x", "y", {})], *DOUBLE[1:]))
    drawn = {run(x=[0.0])["y"].item() for _ in range(5)}
    assert len(drawn) == 5


# ---- files that are not what they should be ----


def test_all_missing_operations_are_named_at_once():
    nodes = [("Frobnicate", "x", "a", {}), ("StringSplit", "a", "b c", {}), ("Add", "x x", "y", {})]
    with pytest.raises(NotImplementedError, match="not supported: Frobnicate, StringSplit"):
        runner(model(nodes, *DOUBLE[1:], opset=20))


def test_an_unknown_attribute_is_named():
    with pytest.raises(NotImplementedError, match=r"Relu.*with the attribute 'hue'"):
        runner(model([("Relu", "x", "y", {"hue": 1})], *DOUBLE[1:]))


def test_opsets_that_nobody_knows_yet():
    with pytest.raises(NotImplementedError, match="uses opset 900; those up to"):
        runner(model(*DOUBLE, opset=900))


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (b"", ValueError, "has no graph"),
        (b"\xff\xff\xff", ValueError, "not an ONNX file, or it is damaged"),
        (3, TypeError, "takes a path, the bytes of a file"),
    ],
)
def test_what_is_no_model(source, error, message):
    with pytest.raises(error, match=message):
        runner(source)


def test_folders_and_missing_files(tmp_path):
    with pytest.raises(ValueError, match="is a folder"):
        runner(tmp_path)
    with pytest.raises(FileNotFoundError):
        runner(tmp_path / "none.onnx")


def test_values_that_nothing_makes():
    with pytest.raises(ValueError, match="takes 'w', which nothing before it makes"):
        runner(model([("Add", "x w", "y", {})], *DOUBLE[1:]))
    with pytest.raises(ValueError, match="nothing makes the output 'y'"):
        runner(model([("Add", "x x", "z", {})], *DOUBLE[1:]))


def test_a_function_that_calls_itself():
    onnx = require("onnx")
    helper = onnx.helper
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    again = helper.make_function(
        "own", "f", ["a"], ["b"], [helper.make_node("f", ["a"], ["b"], domain="own")], imports
    )
    made = model([("f", "x", "y", {"domain": "own"})], *DOUBLE[1:])
    made.functions.append(again)
    with pytest.raises(ValueError, match="the function f calls itself"):
        runner(made)


def chained(depth, body):
    """A model whose function f0 adds, and whose others consist of `body(helper, name of the one before)`."""
    helper = require("onnx").helper
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    made = model([(f"f{depth}", "x", "y", {"domain": "own"})], *DOUBLE[1:])
    made.opset_import.append(imports[1])
    made.ir_version = 8
    add = [helper.make_node("Add", ["a", "a"], ["b"])]
    for number in range(depth + 1):
        nodes = body(helper, f"f{number - 1}") if number else add
        made.functions.append(helper.make_function("own", f"f{number}", ["a"], ["b"], nodes, imports))
    return made


def twice(helper, before):
    return [
        helper.make_node(before, ["a"], ["c"], domain="own"),
        helper.make_node(before, ["c"], ["b"], domain="own"),
    ]


def test_functions_that_call_the_next_twice(monkeypatch):
    monkeypatch.setattr("lazygrad.nn.onnx.graph._MAX_INLINED", 1000)
    assert runner(chained(5, twice))(x=[1.0])["y"].tolist() == [2.0**32]
    with pytest.raises(ValueError, match="its calls of functions become more than 1000 nodes"):
        runner(chained(40, twice))


def test_functions_that_call_each_other_deeply():
    def once(helper, before):
        return [helper.make_node(before, ["a"], ["b"], domain="own")]

    assert runner(chained(40, once))(x=[1.0])["y"].tolist() == [2.0]
    with pytest.raises(ValueError, match="graphs and functions are nested more than 64 deep"):
        runner(chained(400, once))


def nested_branches(helper, node, output, depth):
    """`If` in `If`: both branches of each are alike."""
    body = helper.make_graph([node], "body", [], [helper.make_empty_tensor_value_info(output)])
    for number in range(depth):
        inner = helper.make_node("If", ["yes"], [f"{output}{number}"], then_branch=body, else_branch=body)
        body = helper.make_graph(
            [inner], "body", [], [helper.make_empty_tensor_value_info(f"{output}{number}")]
        )
    return body


def test_graphs_in_graphs():
    """No file of protobuf's is nested much deeper; through functions it can be."""
    onnx = require("onnx")

    def branching(helper, before):
        yes = helper.make_node("Constant", [], ["yes"], value=onnx.numpy_helper.from_array(np.array(True)))
        call = helper.make_node(before, ["a"], ["c"], domain="own")
        body = nested_branches(helper, call, "c", 2)
        made = helper.make_node("If", ["yes"], ["b"], then_branch=body, else_branch=body)
        return [yes, made]

    assert runner(chained(2, branching))(x=[1.0])["y"].tolist() == [2.0]
    with pytest.raises(ValueError, match=r"nested more than 64 deep|more than 65536 nodes"):
        runner(chained(40, branching))

    def passing(helper, before):
        """Its attribute, both branches of an `If` in the attribute of the next: each graph is there once."""
        given = helper.make_node("If", ["yes"], ["o"])
        for name in ("then_branch", "else_branch"):
            given.attribute.add(name=name, ref_attr_name="body", type=onnx.AttributeProto.GRAPH)
        body = helper.make_graph([given], "body", [], [helper.make_empty_tensor_value_info("o")])
        return [helper.make_node(before, ["a"], ["b"], domain="own", body=body)]

    made = chained(30, passing)
    for number, function in enumerate(made.functions):
        function.attribute.append("body")
        if number == 0:
            function.ClearField("node")
            node = function.node.add(op_type="If", input=["yes"], output=["b"])
            for name in ("then_branch", "else_branch"):
                node.attribute.add(name=name, ref_attr_name="body", type=onnx.AttributeProto.GRAPH)
    with pytest.raises(ValueError, match="takes 'yes', which nothing before it makes"):
        runner(made)


@pytest.mark.parametrize("name", [b"Tanh", b"x_in"])
def test_names_that_are_no_text(name):
    data = model(
        [("Tanh", "x_in", "y", {})], {"x_in": ("FLOAT", [2])}, {"y": ("FLOAT", [2])}
    ).SerializeToString()
    with pytest.raises(ValueError, match=r"which is not UTF-8|not an ONNX file"):
        runner(data.replace(name, b"\xff\xfe\xfd\xfc"))


def test_a_sparse_tensor_of_any_size():
    onnx = require("onnx")
    made = model(*DOUBLE)
    sparse = made.graph.sparse_initializer.add(dims=[1 << 20, 1 << 20])
    sparse.values.CopyFrom(onnx.numpy_helper.from_array(np.ones(1, np.float32), "w"))
    sparse.indices.CopyFrom(onnx.numpy_helper.from_array(np.zeros(1, np.int64), "i"))
    with pytest.raises(
        ValueError, match=r"the sparse tensor 'w' has shape \[1048576, 1048576\], and at most"
    ):
        runner(made)


def external(tmp_path, **entry):
    """A model whose weight lies in weights.bin beside it."""
    onnx = require("onnx")
    made = model([("Add", "x w", "y", {})], *DOUBLE[1:], {"w": np.array([1, 2], np.float32)})
    tensor = made.graph.initializer[0]
    (tmp_path / "weights.bin").write_bytes(b"...." + tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": "weights.bin", "offset": "4", "length": "8", **entry}.items():
        tensor.external_data.add(key=key, value=value)
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    return tmp_path / "model.onnx"


def test_weights_in_another_file(tmp_path):
    path = external(tmp_path)
    assert runner(path)(x=[1.0, 1.0])["y"].tolist() == [2.0, 3.0]
    with pytest.raises(ValueError, match="give OnnxRunner the path of the model"):
        runner(path.read_bytes())


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"location": "../weights.bin"}, "outside of the model's folder"),
        ({"location": "/etc/hostname"}, "outside of the model's folder"),
        ({"location": "none.bin"}, "cannot be read from 'none.bin'"),
        ({"offset": "8"}, "bytes 8 to 16 of 'weights.bin', which has 12"),
        ({"offset": "-4"}, "bytes -4 to 4"),
        ({"length": "4"}, "its data are not those of a tensor of shape"),
        ({"length": "many"}, "cannot be read"),
    ],
)
def test_external_data_that_lie(tmp_path, entry, message):
    with pytest.raises(ValueError, match=message):
        runner(external(tmp_path, **entry))


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "inner").mkdir()
    path = external(tmp_path / "inner")
    (tmp_path / "weights.bin").write_bytes((tmp_path / "inner" / "weights.bin").read_bytes())
    (tmp_path / "inner" / "weights.bin").unlink()
    (tmp_path / "inner" / "weights.bin").symlink_to(tmp_path / "weights.bin")
    with pytest.raises(ValueError, match="outside of the model's folder"):
        runner(path)


@needs("onnx")
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_files_are_refused_in_words(data):
    """Bytes that are changed, cut or added: a model that runs, or one of the errors that a file may give."""
    nodes = [("Reshape", "x s", "a", {}), ("Add", "a w", "b", {}), ("Softmax", "b", "y", {"axis": 1})]
    constants = {"s": [1, -1], "w": np.ones((1, 4), np.float32)}
    raw = bytearray(
        model(nodes, {"x": ("FLOAT", [4])}, {"y": ("FLOAT", None)}, constants).SerializeToString()
    )
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw
    try:
        run = runner(bytes(raw))
        run(
            {
                name: np.zeros([d if isinstance(d, int) else 1 for d in info.shape or ()], np.float32)
                for name, info in run.inputs.items()
            }
        )
    except (ValueError, TypeError, IndexError, NotImplementedError, RuntimeError):
        pass


def test_a_constant_of_a_terabyte_is_not_made():
    nodes = [
        ("ConstantOfShape", "s", "big", {}),
        ("ReduceSum", "big", "sum", {"keepdims": 0}),
        ("Add", "x sum", "y", {}),
    ]
    run = runner(model(nodes, *DOUBLE[1:], {"s": np.array([1 << 20, 1 << 18])}))
    assert run(x=[3.0])["y"].tolist() == [3.0]


def test_regions_whose_points_depend_on_data():
    """RoiAlign with sampling_ratio 0 takes as many points as a region has pixels: it is a part of its own."""
    inputs = {"x": ("FLOAT", [1, 1, 4, 4]), "rois": ("FLOAT", ["n", 4]), "batch": ("INT64", ["n"])}
    nodes = [
        ("Add", "x x", "twice", {}),
        ("RoiAlign", "twice rois batch", "cells", {"output_height": 2, "output_width": 2}),
        ("Neg", "cells", "y", {}),
    ]
    run = runner(model(nodes, inputs, {"y": ("FLOAT", None)}))
    for size in (2.0, 4.0) * 3:
        out = run(x=np.ones((1, 1, 4, 4), np.float32), rois=[[0.5, 0.5, size, size]], batch=[0])["y"]
        assert out.tolist() == [[[[-2.0, -2.0], [-2.0, -2.0]]]]
    assert len(run._segments[frozenset()].segments) == 3
