"""Names that a user gives: they are part of the text of kernels, and mean nothing else there."""

from __future__ import annotations

import pytest

from lazygrad import Tensor, Variable, dtypes
from lazygrad.device import Device
from lazygrad.renderer.texts import variable_name
from tests.helpers import needs

#: Keywords, types, functions, macros, labels of the languages that kernels are written in, and names that
#: renderers give.
WORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile
    while bool half uchar ushort uint ulong and or xor not asm class delete new operator private protected
    public template this throw true false try typename using virtual kernel constant global local pipe event
    float4 half8 double2 int16 uchar4 long2 exp2 log2 sqrt sin fma fmax fmin max min trunc floor abs select
    barrier get_group_id get_local_id get_global_id vload4 vstore4 as_float as_int convert_float4 clamp mad
    entry scratch piece pieces bufs vals data0 data1 data_0 acc0 val0 alu0 cast0 ptr0 temp0 ridx0 gidx0 lidx0
    ridx0_loop if0 NAN INFINITY NULL CHAR_BIT M_PI __x linux unix i386 free malloc memcpy errno assert
    lambda def None True print range len min inf nan math struct run_workgroup load_masked outside store_lanes
    outside_data0 size_data0 E_4 n N x y z w main printf half_t size_t int8_t uint32_t ptrdiff_t thread block
    threadIdx blockIdx gid lid grid metal vec4 fn let var loop ptr discard
"""
NAMES = [name for name in WORDS.split() if not name.startswith("_")]
NAMES = list(dict.fromkeys([*NAMES, *(f"{name}_" for name in NAMES)]))


def test_no_two_variables_share_an_argument():
    assert len({variable_name(name) for name in NAMES}) == len(NAMES)
    assert variable_name("rows") == "rows"
    assert variable_name("int") == "int_"


@pytest.mark.parametrize(
    "device",
    ["CPU", "PYTHON", pytest.param("CLANG", marks=needs("clang")), pytest.param("CL", marks=needs("cl"))],
)
def test_every_name_is_an_argument(device):
    start = Tensor([1], dtype=dtypes.int64, device=device).realize()
    for first in range(0, len(NAMES), 60):
        total, expected = start, 1
        for number, name in enumerate(NAMES[first : first + 60]):
            total = total + start * Variable(name, 0, 1000).bind(number) * (number + 1)
            expected += number * (number + 1)
        assert total.tolist() == [expected]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("größe", "not 'größe'"),
        ("n" * 10_000, r"not 'n{49}\.\.\. \(10,000 characters\)"),
        ("n" * 65, "not 'n{65}'"),
        ("n;\n", r"not 'n;\\n'"),
        ('n"', "not 'n\"'"),
        ("_n", "not '_n'"),
        ("", "not ''"),
        ("n\n", r"not 'n\\n'"),
        ("١n", "not '١n'"),
        (3, "not 3"),
    ],
    ids=[
        "not ASCII",
        "very long",
        "long",
        "injected",
        "quoted",
        "underscore",
        "empty",
        "line",
        "digit",
        "int",
    ],
)
def test_other_names_are_refused(name, shown):
    with pytest.raises(
        ValueError, match="at most 64 ASCII letters, digits and underscores, with a letter first"
    ) as error:
        Variable(name, 0, 3)
    error.match(shown)


@pytest.mark.parametrize("name", ["const0", "offset12"])
def test_names_of_kernels_own_arguments_are_refused(name):
    with pytest.raises(ValueError, match=f"Variable {name} needs another name"):
        Variable(name, 0, 3)


def test_the_name_of_a_users_class_is_in_no_text(capsys):
    from lazygrad import Function

    class Twice(Function):
        def forward(self, x):
            return x * 2

    Twice.__name__ = Twice.__qualname__ = 'ä"); } void evil() {\n' * 100
    value = Twice.apply(Tensor([1.0, 2.0]))
    [kernel] = value.kernels()
    assert "evil" not in kernel.source
    assert value.tolist() == [2.0, 4.0]
    assert Device.DEFAULT
