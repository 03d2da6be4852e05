"""What Kineto's files say of NCCL's and RCCL's kernels, in each of the places where versions of PyTorch say
it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.pod.comms import comms
from tb_tpuprof.trace.collectives import element_bytes, is_collective_kernel, kind_named
from tests.ingest.chrome_files import opened
from tests.kineto_ranks import GENERIC, SEND_RECV, Comm, rank_file, stated

LONG = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...]"


def told(folder: Path, comm: Comm, info: dict[str, Any] | None = None) -> dict[str, Any]:
    """All that is known of a single collective."""
    trace = opened(folder, rank_file(1, [[comm]], info))
    found = comms(trace)
    assert len(found) == 1
    texts = {
        name: trace.strings.get(int(getattr(found, name)[0])) for name in ("kind", "group", "ranks", "dtype")
    }
    return texts | {name: int(getattr(found, name)[0]) for name in ("in_bytes", "out_bytes", "size")}


def test_a_kernel_s_own_arguments_win(tmp_path: Path) -> None:
    own = stated("all_to_allv", 100, 300, "Half", "4", "[0, 1, 2]", about="ep")
    found = told(tmp_path, Comm(100, 50, GENERIC, own, stated("allreduce", 7, 7), ("nccl:broadcast", {})))
    assert found == {
        "kind": "all-to-all",
        "group": "4 (ep)",
        "ranks": "0,1,2",
        "dtype": "Half",
        "in_bytes": 200,
        "out_bytes": 600,
        "size": 3,
    }


def test_else_what_launched_it_says_so(tmp_path: Path) -> None:
    found = told(
        tmp_path,
        Comm(100, 50, GENERIC, {}, stated("_reduce_scatter_base", 4096, 1024, "Float", ranks="[0, 2]")),
    )
    assert (found["kind"], found["in_bytes"], found["out_bytes"]) == ("reduce-scatter", 16384, 4096)
    assert (found["ranks"], found["group"], found["size"]) == ("0,2", "0", 2)


def test_else_the_range_s_name_and_inputs(tmp_path: Path) -> None:
    """As in DLRM's files: the kernel's name says SendRecv, the range around its launch all-to-all; no group
    is stated.
    """
    dims = {"Input Dims": [[48, 4], [2]], "Input type": ["float", "long int"]}
    found = told(tmp_path, Comm(100, 50, SEND_RECV, {}, {}, ("nccl:all_to_all", dims)))
    assert (found["kind"], found["in_bytes"], found["out_bytes"]) == ("all-to-all", 48 * 4 * 4 + 2 * 8, -1)
    assert (found["group"], found["ranks"], found["dtype"], found["size"]) == ("", "", "", -1)


def test_what_nothing_states_is_unknown(tmp_path: Path) -> None:
    bare = told(tmp_path, Comm(100, 50, GENERIC))
    assert (bare["kind"], bare["in_bytes"], bare["size"]) == ("collective", -1, -1)
    assert told(tmp_path, Comm(100, 50, SEND_RECV))["kind"] == "send-receive"
    odd = told(tmp_path, Comm(100, 50, GENERIC, stated("allreduce", 10, 10, "QInt4x2")))
    assert (odd["kind"], odd["in_bytes"], odd["out_bytes"]) == ("all-reduce", -1, -1)


def test_a_launch_that_was_not_recorded_is_found_by_external_id(tmp_path: Path) -> None:
    content = rank_file(0, [[Comm(100, 50, GENERIC, {}, stated("broadcast", 8, 8))]])
    events = content["traceEvents"]
    (param,) = (event for event in events if event["name"] == "record_param_comms")
    (kernel,) = (event for event in events if event["name"] == GENERIC)
    number = kernel["args"].pop("correlation")
    content["traceEvents"] = [
        event for event in events if event is kernel or event.get("args", {}).get("correlation") != number
    ]
    kernel["args"] |= {"External id": param["args"]["External id"], "correlation": 99_999}
    trace = opened(tmp_path, content)
    assert [trace.strings.get(int(kind)) for kind in comms(trace).kind] == ["broadcast"]


def test_long_lists_of_ranks_come_from_the_job_s_groups_or_from_start_and_stride(tmp_path: Path) -> None:
    cut = stated("allreduce", 8, 8, ranks=LONG, size=24, **{"Global rank start": 2, "Global rank stride": 4})
    by_stride = told(tmp_path, Comm(100, 50, GENERIC, cut))
    assert (by_stride["ranks"], by_stride["size"]) == (",".join(map(str, range(2, 98, 4))), 24)
    groups = {
        "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": 24, "ranks": list(range(24, 48))}]
    }
    assert told(tmp_path, Comm(100, 50, GENERIC, cut), groups)["ranks"] == ",".join(map(str, range(24, 48)))
    short = {
        "pg_config": [{"pg_name": "0", "pg_size": 24, "ranks": [1, 2]}, "nonsense"]
    }  # a list that was cut as well
    assert told(tmp_path, Comm(100, 50, GENERIC, cut), short)["ranks"] == by_stride["ranks"]
    del cut["Global rank start"]
    assert (
        told(tmp_path, Comm(100, 50, GENERIC, cut))["ranks"],
        told(tmp_path, Comm(100, 50, GENERIC, cut))["size"],
    ) == ("", 24)


def test_the_job_is_known_by_its_rank_and_size(tmp_path: Path) -> None:
    trace = opened(tmp_path, rank_file(2, [[(100, 10)]]))
    assert set(trace.plane_stats.ints("comm_rank").value.tolist()) == {2}
    assert set(trace.plane_stats.ints("comm_world_size").value.tolist()) == {3}
    assert len(comms(trace)) == 0
    odd = rank_file(2, [[(100, 10)]], {"rank": "2", "world_size": True, "backend": 7})
    stats = opened(tmp_path, odd).plane_stats
    assert not any(stats.has(name) for name in ("comm_rank", "comm_world_size", "comm_backend"))


def test_hostile_arguments_are_unknown_not_errors(tmp_path: Path) -> None:
    for dims, types in (
        (["x"], ["float"]),
        ([[-1]], ["float"]),
        ([[2**40, 2**40]], ["float"]),
        (7, 7),
        ([[[3]]], ["float"]),
        ([[3]], [5]),
    ):
        found = told(
            tmp_path,
            Comm(100, 50, SEND_RECV, {}, {}, ("nccl:all_to_all", {"Input Dims": dims, "Input type": types})),
        )
        assert (found["kind"], found["in_bytes"]) == ("all-to-all", -1)
    found = told(tmp_path, Comm(100, 50, GENERIC, stated("allreduce", 8, 8, ranks="[]", size=0)))
    assert (found["ranks"], found["size"]) == ("", -1)


@pytest.mark.parametrize(
    "text",
    [f"[{'9' * 5000}]", f"[0, {2**31}]", "[0, 12345678901]", f"[{', '.join(map(str, range(2**16 + 1)))}]"],
)
def test_ranks_that_no_job_has_are_unknown(text: str, tmp_path: Path) -> None:
    """Also not in part: a list without its largest rank would be another group."""
    found = told(tmp_path, Comm(100, 50, GENERIC, stated("allreduce", 8, 8, ranks=text, size=2)))
    assert (found["ranks"], found["size"]) == ("", 2)


@pytest.mark.parametrize("ranks", [[False, True], [0, 2**31], [0, -1], [0, "1"], [0, 1.0]])
def test_listed_groups_of_anything_but_ranks_are_left_out(ranks: list[object], tmp_path: Path) -> None:
    info = {"pg_config": [{"pg_name": "0", "pg_size": 2, "ranks": ranks}]}
    arguments = stated("allreduce", 8, 8, ranks="[0, 2147483647]")
    found = told(tmp_path, Comm(100, 50, GENERIC, arguments), info)
    assert (found["ranks"], found["size"]) == ("0,2147483647", 2)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("allreduce_coalesced", "all-reduce"),
        ("_allgather_base", "all-gather"),
        ("ALLGATHER_coalesced", "all-gather"),
        ("reduce_scatter_tensor_coalesced", "reduce-scatter"),
        ("alltoall_base", "all-to-all"),
        ("_reduce_oop", "reduce"),
        ("gather", "gather"),
        ("scatter", "scatter"),
        ("send 0->1", "send-receive"),
        ("coalesced", "send-receive"),
        ("barrier", "barrier"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "reduce-scatter"),
        (GENERIC, ""),
        ("mscclKernel_Sum_half_LL", ""),
    ],
)
def test_names_stand_for_kinds(name: str, kind: str) -> None:
    assert kind_named(name) == kind


def test_kernels_and_types_are_known_by_name() -> None:
    kernels = (
        "ncclKernel_AllReduce",
        "rcclGenericKernel",
        "mscclKernel_Sum",
        "void ncclDevKernel_x",
        "NCCL_x",
        "gemm",
        "my_nccl_like",
    )
    assert [is_collective_kernel(name) for name in kernels] == [True] * 5 + [False] * 2
    sizes = [
        element_bytes(name)
        for name in ("BFloat16", "c10::Half", "long int", "c10::complex<double>", "Float8_e4m3fn", "?")
    ]
    np.testing.assert_array_equal(sizes, [2, 2, 8, 16, 1, 0])
