"""`init` and what a program asks of its world, in one process."""

from __future__ import annotations

import sys

import pytest

from lazygrad import Tensor, distributed
from lazygrad.distributed import starting


@pytest.fixture(autouse=True)
def not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process that nobody has launched."""
    for name in starting._LAUNCHED:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(starting, "_Started", type("_Started", (starting._Started,), {"done": False}))


def test_without_mpirun_the_world_is_this_process(capsys: pytest.CaptureFixture[str]) -> None:
    distributed.init(seed=5)
    assert (distributed.rank(), distributed.world_size(), distributed.local_rank()) == (0, 1, 0)
    assert distributed.is_main()
    assert distributed.broadcast({"a": 1}) == {"a": 1}
    distributed.barrier()
    distributed.agree("anything", b"")
    distributed.print_main("here")
    assert capsys.readouterr().out == "here\n"


def test_the_seed_is_set() -> None:
    distributed.init(seed=5)
    drawn = Tensor.rand(2).tolist()
    Tensor.manual_seed(5)
    assert Tensor.rand(2).tolist() == drawn


def test_it_is_called_once() -> None:
    distributed.init()
    with pytest.raises(RuntimeError, match=r"init\(\) was called before; this is rank 0 of 1"):
        distributed.init()


def test_a_missing_mpi4py_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ImportError, match=r'pip install "lazygrad\[mpi\]"'):
        distributed.init()


def test_it_comes_before_the_first_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Tensor([1.0]).realize()
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    monkeypatch.setattr(starting, "_need_mpi4py", lambda: None)
    with pytest.raises(RuntimeError, match="comes before the first tensor is computed"):
        distributed.init()
    del kept


def test_what_is_wrong_with_arguments() -> None:
    with pytest.raises(ValueError, match="timeout must be more than 0 seconds, not -1"):
        distributed.init(timeout=-1)
    with pytest.raises(ValueError, match="each rank has at least one device, not 0"):
        distributed.init(devices=0)
    with pytest.raises(TypeError, match="a whole number, not 'CPU'"):
        distributed.init(devices="CPU")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="agree takes a text and bytes, not str and str"):
        distributed.agree("the seed", "5")  # type: ignore[arg-type]
