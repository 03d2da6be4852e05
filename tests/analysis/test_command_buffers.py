from __future__ import annotations

from pathlib import Path

import numpy as np

from tb_tpuprof.analysis.events.command_buffers import _Slot, graph_kernels, match
from tb_tpuprof.analysis.events.hlo_links import hlo_links
from tb_tpuprof.ingest.opening import open_trace

DATA = Path(__file__).parents[1] / "data" / "gpu"


def slots(*words: str) -> list[_Slot]:
    """A schedule: fusions by their name, library calls as `call`, copies as `copy`; the row is the place."""
    return [
        _Slot(i, {"call": "custom-call", "copy": "copy"}.get(word, "fusion"), word)
        for i, word in enumerate(words)
    ]


def test_kernels_go_to_the_instructions_of_the_schedule_in_order() -> None:
    schedule = slots("call", "gemm_fusion_dot", "copy", "wrapped_add", "call", "wrapped_add")
    kernels = [
        "Memset",
        "nvjet_a",
        "gemm_fusion_dot_11",
        "MemcpyD2D",
        "wrapped_add_3",
        "nvjet_b",
        "splitKreduce",
        "wrapped_add_3",
    ]
    assert match(kernels, schedule) == [0, 0, 1, 2, 3, 4, 4, 5]


def test_a_graph_may_begin_anywhere_in_the_schedule() -> None:
    assert match(["nvjet", "wrapped_add_1"], slots("loop_fusion", "call", "wrapped_add")) == [1, 2]


def test_what_fits_in_several_ways_is_left_alone() -> None:
    assert match(["wrapped_add_1"], slots("wrapped_add", "call", "wrapped_add")) == []
    # Two calls and three kernels: one of them launched two, but which?
    assert match(["a", "b", "c", "loop_fusion"], slots("call", "call", "loop_fusion")) == []


def test_what_does_not_fit_is_left_alone() -> None:
    assert match(["loop_fusion_1", "input_fusion"], slots("loop_fusion", "wrapped_add", "input_fusion")) == []
    assert match(["loop_fusion", "nvjet", "input_fusion"], slots("loop_fusion", "input_fusion")) == []
    assert match([], slots("call")) == []


def test_a_large_hostile_graph_takes_no_time() -> None:
    assert match(["loop_fusion_1"] * 30_000, slots(*["loop_fusion"] * 30_000)) == list(range(30_000))


def test_each_kernel_of_a_real_command_buffer_names_its_instruction() -> None:
    """An H100's: by hand, eight launches of 11 matrix products (with a memset each), 15 fusions of XLA's."""
    trace = open_trace(str(DATA / "jax_sync1.xplane.pb.gz"))
    found = graph_kernels(trace)
    (program,) = np.unique(found.program).tolist()
    module = trace.programs.module(program)
    assert module is not None
    assert (found.instruction >= 0).all()
    rows, count = np.unique(found.instruction, return_counts=True)
    calls = module.has_opcode(("custom-call",))[rows]
    assert count[calls].tolist() == [16] * 11
    assert count[~calls].tolist() == [8] * 15
    kernel = [
        trace.strings[i] for i in trace.metadata["name"][trace.events["metadata"][found.events]].tolist()
    ]
    is_library = np.array([name.startswith(("nvjet", "Memset")) for name in kernel])
    assert (is_library == module.has_opcode(("custom-call",))[found.instruction]).all()
    links = hlo_links(trace)
    assert links.n_unknown == 0
    assert {op.path[0] for op in links.ops} == {"command_buffer_1"}
