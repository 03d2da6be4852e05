"""Each reason for a difference from the peer has a test that proves our side from something other than the
peer.

The live comparison (`live.py`) lists where this project says something else on purpose, each with a sentence
that begins with what is true. `PROOFS` names, for each such sentence, the tests that show it: planted
numbers, counts by hand, raw bytes, XLA's own cost analysis.

To add a difference:

1. list it in `live.py`, `live_corpus.py`, `live_corpus_reasons.py` or `live_corpus_memory.py` with its
sentence, or (of recorded
   answers) in `REASONS` of `test_ops.py`;
2. write a test that would fail if the peer were right (`test_proofs.py`, or beside the analysis), from which
the peer's answer is absent; 3. add a line here: the sentence's beginning, as long as needed to be the only
one, and the tests as `folder/file.py::name`.

A sentence without a line fails, and so do a line without a sentence and a test that is gone. Where the proof
fails, the peer is right: mend the analysis and delete the sentence.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.conformance import live, test_ops

TESTS = Path(__file__).parent.parent
REASONS = {*live.ALL_DIFFERENCES.values(), *test_ops.REASONS}
_STEPS, _KERNELS, _PROOFS = (
    "analysis/steps/test_steps.py::",
    "analysis/kernels/test_kernels.py::",
    "conformance/test_proofs.py::",
)
_MEMORY, _COST, _TREE = (
    "analysis/memory/test_memory.py::",
    "analysis/hlo/test_cost.py::",
    "analysis/hlo/test_op_tree.py::",
)
_GPU_PARTS = "tools/pod_viewer/test_gpu_parts.py::"
_HLO_MEMORY = "analysis/hlo/test_memory.py::"
_CUT_STEPS = (f"{_STEPS}test_first_and_last_of_many_steps_are_left_out",)
_ACTIVE = (
    f"{_MEMORY}test_peak_fragmentation_and_active_allocations_are_those_of_a_direct_replay",
    "conformance/test_memory_profile.py::test_peak_active_allocations_and_fragmentation_are_those_of_a_replay",
)
_LIFETIME = (
    f"{_PROOFS}test_lifetime_peaks_are_those_of_the_raw_events",
    f"{_PROOFS}test_a_lifetime_peak_is_never_below_what_was_in_use",
)
_OCCUPANCY = (
    "analysis/kernels/test_occupancy.py::test_blocks",
    "analysis/kernels/test_occupancy.py::test_beside_what_pytorch_computed",
)
_NO_STEPS = (
    f"{_PROOFS}test_without_steps_there_is_no_average_of_steps",
    "tools/test_overview_page.py::test_without_steps_nothing_is_made_up",
)
_GPU_CORES = ("tools/pod_viewer/test_pod_viewer.py::test_gpus_have_kernels_copies_and_collectives",)
_NEWER_UNITS = ("analysis/events/test_kernel_names.py::test_differences_from_the_peer_s_list",)
_NAMES = (f"{_PROOFS}test_what_is_no_number_is_called_as_its_maker_or_the_page_calls_it",)
_NOT_WRITTEN = (f"{_PROOFS}test_no_tracer_of_the_corpus_writes_what_has_no_column",)
_XLA = (f"{_COST}test_equals_xla", f"{_COST}test_equals_what_xla_says_now")
_ROOFS = ("tools/test_roofline_model.py::test_roofs_and_ridge",)

PROOFS: dict[str, tuple[str, ...]] = {
    # live.py: synthetic runs
    "the peer prints 0.0% whatever": (
        "analysis/overview/test_utilization.py::test_planted_work_of_a_tpu_comes_back_out",
    ),
    "the peer's overview has no verdict on TPUs": (
        "tools/test_input_pipeline_analyzer.py::test_planted_shares_of_a_tpu_come_back",
        "tools/test_overview_page.py::test_the_input_pipeline_analyser_never_says_otherwise",
    ),
    "the profiled time ends with the last step": (
        f"{_PROOFS}test_the_profiled_time_ends_with_the_last_step",
    ),
    "an operation that begins when its step does": (
        f"{_PROOFS}test_an_operation_that_begins_with_its_step_is_its_own",
    ),
    "there are no steps: what is not known is empty": _NO_STEPS,
    "neither says anything: there are no steps": (
        "analysis/input/test_pipeline.py::test_without_steps_the_verdict_is_open",
    ),
    "hosts differ: all parts are means": (
        f"{_PROOFS}test_parts_of_hosts_are_means_that_sum_to_the_mean_step",
    ),
    "the mean over hosts, as the page says": (
        f"{_PROOFS}test_parts_of_hosts_are_means_that_sum_to_the_mean_step",
    ),
    "the vendor writes its name NVIDIA": _NAMES,
    "the product's name, such as v5e": ("analysis/overview/test_summary.py::test_amd_and_tpu_and_cpu",),
    "a matrix product for sm90": _NEWER_UNITS,
    "cuBLAS's names on Hopper and Blackwell": _NEWER_UNITS,
    "computing is the mean over cores, as planted": (
        "test_synthetic.py::test_step_times_and_parts_of_unlike_tpus_are_those_by_hand",
    ),
    "equal rows of hosts are merged": (f"{_KERNELS}test_rows_of_hosts_become_one",),
    "what earlier steps left counts too": _ACTIVE,
    "never below the peak in the capture, which has": _LIFETIME,
    "where the trace tells none it is computed": _OCCUPANCY,
    "steps that the capture's start or end may have cut are left out, as on the overview": _CUT_STEPS,
    "each GPU is a core; the peer has one per host": _GPU_CORES,
    "the host ran no operation": (f"{_PROOFS}test_a_host_without_operations_idles_in_no_span",),
    "122% of the peak was counted": (
        "analysis/ops/test_roof_excess.py::test_no_page_shows_more_than_a_peak",
    ),
    "a step's annotation contains what the GPUs did for it": (
        f"{_STEPS}test_a_step_s_annotation_that_contains_its_kernels_is_the_step",
    ),
    "copies to the device are a cause of their own": (
        f"{_PROOFS}test_copies_to_a_gpu_are_transfers_and_no_waiting_for_data",
    ),
    # live_corpus.py: kernels, memories and pods of real runs
    "times since the trace's start": (f"{_MEMORY}test_threads_interleave_by_absolute_time",),
    "allocations of earlier steps that are still there": _ACTIVE,
    "never below the peak in the capture; the peer's": _LIFETIME,
    "kernels and copies that no `tf_op` names": (
        f"{_KERNELS}test_operations_come_from_a_derived_line_where_kernels_name_none",
        f"{_KERNELS}test_a_kernel_of_an_instruction_without_a_framework_s_name_is_called_by_the_instruction",
    ),
    "AMD's `group_mem` is read": (f"{_KERNELS}test_launches_of_older_and_of_amd_tracers",),
    "the trace tells none: computed from the launch": _OCCUPANCY,
    "steps that Keras' functions tell": (
        f"{_STEPS}test_without_annotations_a_step_lasts_from_one_run_of_a_function_to_the_next",
    ),
    "a GPU that did its part of the step at another time": (
        f"{_GPU_PARTS}test_a_gpu_that_did_its_part_at_another_time_has_a_span_of_its_own",
    ),
    "calls of Python and events inside others": (
        f"{_STEPS}test_nested_work_is_counted_once_and_wrappers_not_at_all",
        "tools/pod_viewer/test_exchange.py::test_every_class_of_a_host_s_step_has_its_part",
    ),
    "a generator's frames (`batches`) are waiting": (
        "truth/test_input.py::test_a_jax_loop_that_waits_for_its_loader_says_so_and_where",
    ),
    "a kernel whose launch the trace does not describe": (
        f"{_KERNELS}test_kernels_of_no_known_launch_count_wherever_they_run",
    ),
    # live_corpus_reasons.py: compiled operations of real runs
    "an element is a FLOP": _XLA,
    "cuBLAS calls are work": (f"{_PROOFS}test_a_cublas_call_multiplies_its_matrices",),
    "a cuDNN call's bytes are HBM's": (
        f"{_PROOFS}test_a_cudnn_call_moves_its_images_kernels_and_workspace_through_hbm",
    ),
    "sums over operations whose work differs": (
        "analysis/hlo/test_roofline.py::test_sums",
        f"{_TREE}test_every_node_is_the_sum_of_its_children",
    ),
    "a copy's bytes count once, where it ends": (
        f"{_PROOFS}test_a_copy_to_or_from_the_host_moves_its_array_once_from_its_start_to_its_done",
        "analysis/ops/test_async_ops.py::test_bytes_count_once_and_over_the_whole_copy",
        "analysis/ops/test_tpu_totals_corpus.py::test_hbm_bytes_of_a_run_with_host_offload",
    ),
    "the data sheet's peak of MI300X": (
        "analysis/device/test_peaks.py::test_the_data_sheet_wins_where_the_tracer_halves_the_bandwidth",
        "analysis/device/test_peaks.py::test_of_the_real_trace_it_is_what_rocm_states",
    ),
    "XLA:CPU's operations are listed": (
        "analysis/ops/test_ops.py::test_xla_on_the_cpu_where_there_is_no_device",
    ),
    "no compiled operation, so no page": (
        "tools/test_hlo_stats.py::test_without_compiled_operations_it_says_why",
    ),
    "there are no steps; the peer's average of none": _NO_STEPS,
    "no tracer writes it": _NOT_WRITTEN,
    "the peer leaves it empty for each operation": _NOT_WRITTEN,
    "the peer says 0 of each operation here": (
        "tools/test_hlo_stats.py::test_stalls_clock_and_energy_only_where_traced",
    ),
    "the peer warns that there are no steps": _NO_STEPS,
    "says that a CPU states no peaks": ("tools/test_roofline_model.py::test_a_cpu_has_points_but_no_roofs",),
    "device names as the vendor writes them": _NAMES,
    "how the peer draws its page": _ROOFS,
    "per device that ran something": (f"{_PROOFS}test_time_per_device_is_of_devices_that_ran_something",),
    "a clock's scale is in the rates": (
        "tools/test_hlo_stats.py::test_stalls_clock_and_energy_only_where_traced",
    ),
    "nodes above categories count": (f"{_TREE}test_every_node_is_the_sum_of_its_children",),
    "an IDLE node of no time is left out": (f"{_PROOFS}test_no_node_of_the_tree_has_no_time",),
    "operations of several programs that only share a name": (
        f"{_TREE}test_duplicates_are_grouped_where_there_are_several",
    ),
    "the root's utilization counts the same time": (
        "tools/test_op_profile.py::test_times_and_utilizations_are_those_that_were_planted",
    ),
    "the cost model tells the FLOPs of each instruction": (
        *_XLA,
        f"{_COST}test_nothing_is_negative_and_parts_sum_to_the_whole",
    ),
    "the source line, where there is no stack": (
        "analysis/timeline/test_source_lines.py::test_boxes_are_called_by_the_source_of_their_operations",
    ),
    "a CPU is called CPU": _NAMES,
    # live_corpus_memory.py: the memory of programs
    "kinds of memory stand apart here": (
        f"{_HLO_MEMORY}test_permanent_memory_lies_below_the_temporaries_and_threads_own_in_no_sum",
        "truth/test_memory_facts.py::test_kinds_of_memory_are_those_that_xla_states",
    ),
    "a value that shares another one's memory": (
        f"{_HLO_MEMORY}test_shared_memory_counts_once_and_lives_until_its_last_user",
    ),
    "colours are the page's": ("tools/test_input_pipeline_analyzer.py::test_colours_are_the_frontends",),
    "of an allocation their number": (
        "tools/test_memory_viewer.py::test_live_buffers_lie_where_and_as_long_as_the_file_says",
    ),
    "without the padding of parameters and results": (
        "analysis/hlo/test_padding.py::test_a_batch_of_16_on_128_lanes_wastes_seven_of_eight",
    ),
    "results that take over a parameter's memory": (
        "truth/test_memory_facts.py::test_a_result_in_a_donated_parameter_s_memory_is_no_second_buffer",
    ),
    "buffers that are held throughout": (f"{_HLO_MEMORY}test_spaces_are_apart",),
    # test_ops.py: framework operations of recorded runs
    "memory allocated or freed for an operation": (
        "analysis/ops/test_ops.py::test_memory_for_an_operation_is_no_execution_of_it",
        f"{_PROOFS}test_functions_ran_each_operation_as_often_as_the_raw_events_of_its_name",
        "truth/test_ops_tf.py::test_operations_ran_as_often_and_as_long_as_their_loops",
    ),
    "operations that ran eagerly": (
        "analysis/ops/test_ops.py::test_an_eager_execution_is_its_kernel_named_by_its_dispatch",
        "truth/test_ops_tf.py::test_operations_ran_as_often_and_as_long_as_their_loops",
    ),
}


def of(reason: str) -> list[str]:
    """The lines that stand for a reason."""
    return [beginning for beginning in PROOFS if reason.startswith(beginning)]


@pytest.mark.parametrize("reason", sorted(REASONS))
def test_each_reason_has_a_proof(reason: str) -> None:
    found = of(reason)
    # One reason may begin like another: the longest line is its own.
    assert found, (
        f"no test proves: {reason}\nWrite one and name it in PROOFS ({Path(__file__).name} says how)."
    )
    assert PROOFS[max(found, key=len)]


def test_each_line_is_of_a_reason() -> None:
    used = {max(found, key=len) for reason in REASONS if (found := of(reason))}
    assert set(PROOFS) == used


@cache
def functions_of(file: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse((TESTS / file).read_text("utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("proof", sorted({proof for proofs in PROOFS.values() for proof in proofs}))
def test_each_proof_is_there_asserts_and_does_not_ask_the_peer(proof: str) -> None:
    file, _, name = proof.partition("::")
    assert (TESTS / file).is_file()
    function = functions_of(file).get(name)
    assert function is not None, f"{proof} is gone"
    assert any(isinstance(node, ast.Assert) for node in ast.walk(function))
    asked = {
        node.func.id
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not asked & {"answer", "theirs", "joined"}, f"{proof} takes the peer's answer for granted"
