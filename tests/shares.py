"""Which tests a run plays.

Quick ones run by default; of rows that are many of a kind a share does, and the others are slow. Of slow ones
a run with `-m slow` plays one in so many of each kind. All of it is drawn by lot: a digest of a test's id and
of FUZZ_SEED, which `.ci/run` takes from the commit, so that others are drawn each time and a week of commits
plays them all. EXHAUSTIVE=1 plays every slow one. `--share I/N` plays the I-th of N parts of what is left;
FUZZ_SEED has no say in which tests a part has.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import pytest

# ---- rows of which a share runs by default ----

#: Tables whose rows take the same path with other values: one row in so many. A row that is always to run is
#: a test of its own.
SHARES = {
    "tests/codegen/test_legalize.py::test_casts": 3,
    "tests/codegen/test_legalize.py::test_floats": 3,
    "tests/codegen/test_legalize.py::test_integers": 3,
    "tests/codegen/test_plans.py::test_the_plan_that_is_chosen_is_the_best_by_the_program_as_well": 3,
    "tests/codegen/test_random.py::test_scatter": 3,
    "tests/commands/test_every_kind.py::test_check": 2,
    "tests/commands/test_every_kind.py::test_debug": 2,
    "tests/commands/test_every_kind.py::test_explain": 2,
    "tests/device/test_every_device.py::test_a_feature": 6,
    "tests/device/test_every_device.py::test_a_type": 96,
    "tests/device/test_every_device.py::test_an_optimization": 56,
    "tests/engine/test_check_index.py::test_every_lane_of_every_kernel": 3,
    "tests/exporting/test_training_mode.py::test_a_model_that_trains_is_refused": 3,
    "tests/fuzz/test_growth.py::test_data_that_comes_in_does_not_stay": 3,
    "tests/fuzz/test_growth.py::test_the_state_of_a_layer": 3,
    "tests/fuzz/test_growth.py::test_the_state_of_an_optimizer": 3,
    "tests/fuzz/test_remainders.py::test_special_values": 3,
    "tests/linalg/test_linalg_namespace.py::test_the_same_as_torch": 2,
    "tests/nn/formats/test_torch_files.py::test_every_dtype": 2,
    "tests/nn/onnx/test_microsoft.py::test_an_operation_gives_what_onnxruntime_gives": 2,
    "tests/nn/test_docstrings.py::test_examples_run": 3,
    "tests/nn/test_every_module.py::test_first_weights_are_drawn_from_a_generator": 3,
    "tests/nn/test_fractional_pooling.py::test_the_same_as_pytorch": 3,
    "tests/nn/test_functional.py::test_a_sample_on_other_devices": 2,
    "tests/nn/test_functional.py::test_as_in_pytorch": 3,
    "tests/nn/test_integer_weights.py::test_it_is_the_same_on_every_device": 3,
    "tests/nn/test_integer_weights.py::test_values_are_those_of_the_blocks": 3,
    "tests/nn/test_layers.py::test_a_layer_computes_what_pytorch_does": 2,
    "tests/nn/test_modules.py::test_a_layer_is_pytorchs": 3,
    "tests/nn/test_packed.py::test_recurrent_layers_as_in_torch": 3,
    "tests/nn/test_quantized.py::test_on_two_devices": 3,
    "tests/nn/test_state.py::test_every_dtype_comes_back_to_the_bit": 3,
    "tests/renderer/test_exact.py::test_ops_of_one_and_two_values": 3,
    "tests/renderer/test_expert_texts.py::test_text": 3,
    "tests/renderer/test_names.py::test_every_name_is_an_argument": 4,
    "tests/renderer/test_programs.py::test_masked_loads_and_stores": 3,
    "tests/runtime/test_drivers.py::test_a_kernel_reads_and_writes_views": 4,
    "tests/runtime/test_drivers.py::test_bytes_are_copied_from_and_to_anywhere": 3,
    "tests/runtime/test_drivers.py::test_every_dtype": 6,
    "tests/runtime/test_pool.py::test_results_are_the_same_for_every_number_of_threads": 2,
    "tests/schedule/test_order.py::test_a_checkpoint_does_not_raise_the_peak": 3,
    "tests/special/test_special.py::test_chebyshev_of_great_degree": 2,
    "tests/special/test_special.py::test_error_bounds": 2,
    "tests/tensor/test_decompositions.py::test_spectra": 2,
    "tests/tensor/test_decompositions.py::test_values_and_gradients": 3,
    "tests/tensor/test_generator.py::test_every_random_function_takes_a_generator": 2,
    "tests/tensor/test_other_device.py::test_every_method_stays_where_its_tensors_are": 2,
    "tests/tensor/test_own_graphs.py::test_a_graph_and_its_steps_give_the_same": 2,
    "tests/tensor/test_own_words.py::test_the_same_text_gives_the_same_in_python": 2,
    "tests/tensor/test_sharding.py::test_values_do_not_depend_on_how_they_lie": 2,
    "tests/tensor/test_sorting.py::test_few_of_many_are_the_first_of_all": 2,
    "tests/tensor/test_sorting.py::test_sort": 2,
    "tests/tensor/test_special.py::test_error_bounds": 2,
    "tests/tensor/test_torch.py::test_rows": 5,
    "tests/tensor/test_transforms.py::test_examples_draw_different_random_numbers": 3,
    "tests/tensor/test_transforms.py::test_examples_draw_what_one_call_draws": 2,
    "tests/test_gradient.py::test_rule_against_finite_differences": 2,
}

#: The suites that run on other devices too, one in so many of their tests by default (`default_device`).
ON_OTHERS = ("tests/nn/test_layers.py", "tests/tensor/test_indexing.py", "tests/tensor/test_methods.py")
ON_OTHERS += ("tests/tensor/test_random.py", "tests/tensor/test_sorting.py", "tests/tensor/test_torch.py")
SHARES_ON = {"CL": 48, "CUDA": 96, "METAL": 192, "WEBGPU": 48, "AARCH64": 48}
#: And of the tests of lazygrad/codegen on devices where a kernel takes a process of a compiler or a linker.
SHARES_OF_CODEGEN = {"CLANG": 6, "AARCH64": 2}

# ---- slow tests, of which a run plays one in so many ----

#: Tests that take more than a second on a Zen 3 with nothing else to do, a line `file::function` each, as
#: `pytest --durations=0` tells: half of the time that all take, and one in ten of them.
SLOW_TESTS = frozenset(Path(__file__).with_name("slow_tests.txt").read_text(encoding="utf-8").split())
#: Files and tests with hundreds of slow rows of a kind.
MANY_SLOW = (
    "tests/codegen/test_contraction.py::test_many",
    "tests/codegen/test_random.py::test_many",
    "tests/codegen/test_random_opts.py::test_many",
    "tests/codegen/test_tensor_core.py::test_many",
    "tests/codegen/test_transcendental.py::test_every_float32",
    "tests/commands/test_every_kind.py",
    "tests/linalg/test_calls_beside_torch.py",
    "tests/nn/test_every_module.py",
    "tests/renderer/test_exact.py",
    "tests/simplify/test_algebra.py",
    "tests/tensor/test_second_order.py",
    "tests/torch/test_op_info.py",
)
EVERY_DEVICE = "tests/device/test_every_device.py"

#: One in so many of a kind of slow tests, besides `--share`. METAL takes a process of a compiler for each
#: kernel, and threads for its threads.
ALL, ROWS, DEVICES, METAL = 1, 2, 4, 12


def lot(*parts: object) -> int:
    """A number that looks drawn at random, the same in every process."""
    digest = hashlib.blake2b(" ".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def one_in(item: pytest.Item, seed: str) -> int:
    """Of how many tests like this one a run plays one, if it is slow; 0 for a quick one."""
    given = getattr(item, "callspec", None)
    params = given.params if given else {}
    name, device = item.nodeid.split("[")[0], params.get("default_device")
    in_processes = [SHARES_OF_CODEGEN.get(str(each), 1) for each in params.values()]
    marked = item.get_closest_marker("slow") is not None
    default = SHARES_ON.get(device) or SHARES.get(name, 1)
    if "/codegen/" in item.nodeid:
        default *= max(in_processes, default=1)
    many = bool(given) and marked and item.nodeid.startswith(MANY_SLOW)
    if many or lot(item.nodeid, seed) % default:
        if given and (device in SHARES_ON or item.nodeid.startswith(EVERY_DEVICE)):
            return METAL if device == "METAL" else DEVICES
        return ROWS
    return ALL if marked or is_listed(item) else 0


def left_out(items: list[pytest.Item], share: str | None, played: str | None) -> list[pytest.Item]:
    """The tests that the lots leave out; those that are slow are marked so.

    share   I/N: the I-th of N parts is left in
    played  a file with the ids of tests that are left out
    """
    seed, exhaustive = os.environ.get("FUZZ_SEED", "0"), os.environ.get("EXHAUSTIVE", "0") != "0"
    part, parts = _part(share or "0/1")
    before = set(Path(played).read_text(encoding="utf-8").splitlines()) if played else set[str]()
    found = []
    for item in items:
        number = one_in(item, seed)
        if number:
            item.add_marker(pytest.mark.slow)
        drawn = exhaustive or not number or lot("slow", item.nodeid, seed) % number == 0
        if not drawn or lot("share", item.nodeid) % parts != part or item.nodeid in before:
            found.append(item)
    return found


def _part(share: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)/(\d+)", share)
    if found is None or int(found[1]) >= int(found[2]):
        raise pytest.UsageError(f"--share {share} is not I/N, a part I of N that is below N: --share 0/10")
    return int(found[1]), int(found[2])


def is_listed(item: pytest.Item) -> bool:
    """Whether a test is among SLOW_TESTS."""
    return item.nodeid.split("[")[0] in SLOW_TESTS
