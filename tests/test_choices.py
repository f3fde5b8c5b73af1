"""The tests of a choice are listed, and the list only gets shorter."""

from __future__ import annotations

import pytest

from lazygrad import Device, Tensor
from lazygrad.config import OPTS
from tests.choices import CORES, LISTED, PROCESSOR, choices

#: So many tests depend on what is chosen. The number may only fall: a new test counts what is meant by it.
MOST = 396


def test_the_list_is_what_the_tests_say():
    assert LISTED.read_text(encoding="utf-8").split() == choices(), "python -m tests.choices --update"


def test_it_only_gets_shorter():
    assert len(choices()) <= MOST


@pytest.mark.choice
def test_a_test_of_a_choice_has_one_processor_and_no_random_answers():
    target = Device["CPU"].target
    assert (target.arch, target.threads, OPTS.value) == (PROCESSOR, CORES, "")
    assert Tensor([1.0, 2.0], device="CPU").exp2().tolist() == [2.0, 4.0]
