"""Predictions of a step on many devices: links, the timeline, meshes, the command."""

import re

import pytest

from lazygrad.distributed import world_mesh
from lazygrad.distributed.__main__ import main
from lazygrad.distributed.prediction.links import REACHED, Links
from lazygrad.ir.args import CollectiveArg

#: A layer whose first weight is split by columns and whose second by rows; the batch is split.
SCRIPT = """
import lazygrad
from lazygrad import Tensor, distributed, nn

distributed.init(seed=0)
mesh = distributed.world_mesh("data", "model")
first = Tensor.empty(64, 256).shard(mesh, {1: "model"}).realize().requires_grad_()
second = Tensor.empty(256, 64).shard(mesh, {0: "model"}).realize().requires_grad_()
optimizer = nn.optim.SGD([first, second], lr=0.1)


@lazygrad.jit
def step(x):
    optimizer.zero_grad()
    loss = ((x @ first).relu() @ second).square().mean()
    loss.backward()
    optimizer.step()
    return loss


with Tensor.train():
    for _ in range(3):
        step(Tensor.empty(32 * mesh.size("data"), 64).shard(mesh, {0: "data"}).realize())
print("world of", distributed.world_size())
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return str(path)


# ---- links


def test_an_all_reduce_on_one_level():
    links = Links.of("nvlink8,ib400", "sm_90")
    seconds = links.time("all_reduce", 800e6, 800e6, range(8))
    assert seconds == pytest.approx(2 * (800e6 * 7 / 8 / (450e9 * REACHED) + 3 * 3e-6))


def test_between_groups_what_the_groups_leave_is_sent():
    links = Links.of("nvlink8,ib400", "sm_90")
    within = 800e6 * 7 / 8 / (450e9 * REACHED) + 3 * 3e-6
    between = 100e6 * 3 / 4 / (50e9 * REACHED) + 2 * 8e-6
    assert links.time("all_gather", 25e6, 800e6, range(32)) == pytest.approx(within + between)
    assert links.time("all_gather", 200e6, 800e6, (0, 8, 16, 24)) == pytest.approx(
        800e6 * 3 / 4 / (50e9 * REACHED) + 2 * 8e-6
    )


def test_an_all_to_all_sends_to_other_groups_what_they_get():
    links = Links.of("nvlink8,ib400", "sm_90")
    within = 16e6 * 7 / 16 / (450e9 * REACHED) + 3 * 3e-6
    between = 16e6 * 8 / 16 / (50e9 * REACHED) + 8e-6
    assert links.time("all_to_all", 1e6, 16e6, range(16)) == pytest.approx(within + between)


def test_a_broadcast_goes_down_a_tree():
    links = Links.of("nvlink8,ib400", "sm_90")
    within, between = 8e6 / (450e9 * REACHED) + 3e-6, 8e6 / (50e9 * REACHED) + 8e-6
    assert links.time("broadcast", 0, 8e6, range(16)) == pytest.approx(3 * within + between)


def test_a_send_takes_as_long_as_its_slowest_pair():
    """Each of nine devices sends two rows to the next one; between the last two there is no NVLink."""
    links = Links.of("nvlink8,ib400", "sm_90")
    have = tuple((2 * n, 2 * n + 2) for n in range(9))
    want = ((0, 0), *have[:-1])
    group = tuple(f"NULL:{n}" for n in range(9))
    arg = CollectiveArg("send", None, group, 0, ((0, 0),) * 9, (0,) * 9, (0, 1000), (have, want))
    assert links.seconds(arg, 2, range(9)) == pytest.approx(4000 / (50e9 * REACHED) + 8e-6)


GROUP = tuple(f"NULL:{n}" for n in range(32))


def received(kind, place, sends, receives, shape=(1000,), spans=(), count=32, text="nvlink8,ib400"):
    """The bytes that a device gets over each level, of elements of two bytes."""
    arg = CollectiveArg(kind, None, GROUP[:count], place, sends, receives, shape, spans)
    return Links.of(text, "sm_90").received(arg, 2, range(count))


def test_what_is_received_over_each_level():
    """Of n bytes on 4 groups of 8: within the groups what they add up, between them an eighth of it."""
    n, own = 2 * 32000, ((0, 1000),)
    within, between = n * 7 / 8, n / 8 * 3 / 4
    assert received("all_reduce", 0, ((0, 32000),), (32000,)) == [2 * within, 2 * between]
    assert received("all_gather", 5, own, (1000,) * 32) == [within, between]
    assert received("reduce_scatter", 5, own * 32, (1000,)) == [within, between]
    assert received("all_to_all", 5, own * 32, (1000,) * 32) == [7 * 2000, 24 * 2000]
    assert received("all_reduce", 0, ((0, 32000),), (32000,), count=8) == [2 * within, 0]
    assert received("all_reduce", 0, ((0, 32000),), (32000,), count=4, text="host") == [2 * n * 3 / 4]


@pytest.mark.parametrize(("place", "levels"), [(0, [0, 0]), (3, [2000, 0]), (8, [0, 2000]), (9, [2000, 0])])
def test_a_broadcast_is_received_once(place, levels):
    assert received("broadcast", place, (), (1000,) if place else ()) == levels


@pytest.mark.parametrize(("place", "levels"), [(0, [0, 0]), (7, [4000, 0]), (8, [0, 4000])])
def test_a_send_is_received_from_the_device_before(place, levels):
    have = tuple((2 * n, 2 * n + 2) for n in range(9))
    spans = (have, ((0, 0), *have[:-1]))
    assert received("send", place, (), (), (0, 1000), spans, count=9) == levels


def test_one_device_sends_nothing():
    assert Links.of("host", "").time("all_reduce", 1e9, 1e9, [3]) == 0


@pytest.mark.parametrize(
    ("text", "arch", "said"),
    [
        ("token", "", "'token' is no link; there are nvlink8"),
        ("nvlink", "sm_90", "'nvlink': a number comes after nvlink"),
        ("nvlink8", "sm_75", "nothing is known of NVLink on sm_75"),
        ("ib400,nvlink8", "sm_90", "ib400 joins all devices, so nvlink8 has nothing to join"),
    ],
)
def test_links_that_are_not_known(text, arch, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        Links.of(text, arch)


def test_too_many_devices_for_the_links():
    with pytest.raises(ValueError, match="nvlink8 joins 8 devices, and a collective has 16"):
        Links.of("nvlink8", "sm_90").time("all_reduce", 1, 1, range(16))


# ---- meshes


def test_the_mesh_of_one_process():
    assert world_mesh("data", "model").sizes == (1, 1)
    assert world_mesh("data", "model", model=2).sizes == (1, 2)


def test_sizes_of_axes_that_are_not_there():
    with pytest.raises(ValueError, match="'pipe' has a size, and is none of the axes data"):
        world_mesh("data", pipe=2)


# ---- a step


def test_a_step_on_many_devices(script, capsys):
    assert (
        main(["predict", script, "--devices", "64", "--mesh", "data=16,model=4", "--mesh", "data=64,model=1"])
        == 0
    )
    text = capsys.readouterr()
    assert "world of 64" in text.err
    rows = re.findall(r"^(data=\d+ x model=\d+) +(\S+) ms", text.out, re.M)
    assert [name for name, _ in rows] == ["data=16 x model=4", "data=64 x model=1"]
    assert all(0 < float(time) < 10 for _, time in rows)
    assert text.out.count("best") == 1
    # The sum of the second product, the gradients of both weights, and the loss.
    assert "\n  4 collectives take" in text.out
    for link in ("nvlink8", "ib400"):
        assert float(re.search(rf"over {link} each device receives (\S+) MB", text.out)[1]) > 0


def test_meshes_are_tried(script, capsys):
    assert main(["predict", script, "--devices", "4"]) == 0
    assert set(re.findall(r"^data=\d x model=\d", capsys.readouterr().out, re.M)) == {
        "data=4 x model=1",
        "data=2 x model=2",
        "data=1 x model=4",
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--target", "cuda:x"], "after cuda: comes an architecture"),
        (["--links", "token"], "'token' is no link"),
        (["--mesh", "data=3,model=2"], "has 6 devices, not 4"),
        (["--mesh", "data"], "sizes are written as data=64,model=8"),
        (["--mesh", "rows=2,columns=2"], "sizes are asked for rows, columns"),
    ],
)
def test_words_that_make_no_sense(script, capsys, words, said):
    assert main(["predict", script, "--devices", "4", *words]) != 0
    assert said in capsys.readouterr().err


def test_a_script_without_a_step(tmp_path, capsys):
    path = tmp_path / "nothing.py"
    path.write_text("print(1)")
    assert main(["predict", str(path), "--devices", "4"]) == 1
    assert "the script captured no step" in capsys.readouterr().err
