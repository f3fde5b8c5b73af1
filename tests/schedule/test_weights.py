"""Which values are stored because a kernel would be too large otherwise (schedule/place/weights.py)."""

from dataclasses import replace

from lazygrad import Tensor
from lazygrad.device import Device
from lazygrad.schedule.place.weights import Weights
from lazygrad.shape import numel


def test_before_a_sum_of_products_a_factor_is_stored_and_not_the_products():
    x, other = Tensor.empty(8, 1), Tensor.empty(1, 16)
    for _ in range(20):
        x = x.square() + 1
    order = (x * other).relu().sum(0).uop.toposort()
    target = Device["CPU"].renderer.target
    stored = set()
    for limit in range(10, 30):
        must = {}
        Weights(order, {}, must, replace(target, max_ops=limit), None, True)
        stored |= {numel(node) for node in must}
    assert stored == {8}
