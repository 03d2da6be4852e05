"""Communication: devices of a CPU without HLO, limits of coverage, kernels outside of steps, and sums over
hosts whose common steps begin at unlike rows.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.comm.activity import CommOp, Traffic
from tb_tpuprof.analysis.comm.cpu import cpu_activities
from tb_tpuprof.analysis.comm.gpu import op_named
from tb_tpuprof.analysis.comm.host import CommHost, CommRows, comm_devices, comm_host
from tb_tpuprof.analysis.comm.join import OpTimes, _sums, join_comm
from tb_tpuprof.analysis.comm.marks import exposed_marks
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.pod.host import PodCore
from tb_tpuprof.session import Session
from tests.analysis.comm.test_devices import (
    FUSION,
    GATHER,
    GATHERED,
    LOOP,
    OFFLOAD,
    OFFLOADED,
    REDUCE,
    computing,
    core,
    runs,
)
from tests.analysis.cpu.test_runs import end, op, trace_of
from tests.builders import PS, DrawnPlane, Stats, build, event
from tests.ingest.hlo_protos import array, computation, instruction, proto
from tests.kineto_ranks import Comm as Kernel
from tests.kineto_ranks import rank_file, stated
from tests.pod_drawing import drawn_pod
from tests.synthetic import write_run
from tests.synthetic_comm import comm_hosts


def test_devices_of_a_cpu_by_the_names_of_their_operations() -> None:
    """Device 0 computes during its all-reduce, device 3 does not, device 5 runs one within a loop."""
    trace = trace_of(
        with_hlo=False,
        main=[op("all-reduce.3", 0, 10), op("fusion.1", 20, 5)],
        pool=[op("fusion.1", 4, 3)],
        other=[op("all-gather.4", 1, 20, device=3)],
        third=[
            op("while.2", 0, 30, device=5),
            op("all-reduce.3", 5, 10, device=5),
            op("dot", 40, 2, device=5),
        ],
    )
    ordinals, activities, ops = cpu_activities(trace)
    assert ordinals == (0, 3, 5)
    assert set(ops) == {
        CommOp("all-reduce.3", "all-reduce", Traffic.DEVICES),
        CommOp("all-gather.4", "all-gather", Traffic.DEVICES),
    }
    assert [runs(one, ops) for one in activities] == [
        [("all-reduce.3", 0, 10)],
        [("all-gather.4", 1, 21)],
        [("all-reduce.3", 5, 15)],
    ]
    assert [computing(one) for one in activities] == [[(4, 7), (20, 25)], [], [(40, 42)]]


def test_operations_of_a_cpu_whose_program_lacks_them() -> None:
    """The program is there, but not the operation: its name states the kind."""
    trace = trace_of(
        main=[op("reduce-scatter.9", 0, 4), op("dot", 6, 3), op("custom", 10, 1), end("dot", 9, 1)]
    )
    _, (device,), ops = cpu_activities(trace)
    assert runs(device, ops) == [("reduce-scatter.9", 0, 4)]
    assert computing(device) == [(6, 9), (10, 11)]


@pytest.mark.parametrize(
    ("covered", "expected"),
    [(0, [0, 0, 1]), (10, [0, 0, 1]), (11, [0, 1, 0]), (50, [0, 1, 0]), (89, [0, 1, 0]), (90, [1, 0, 0])],
)
def test_runs_are_hidden_from_90_and_exposed_up_to_10_percent(covered: int, expected: list[int]) -> None:
    compute = [(FUSION, 0, covered)] if covered else []
    trace = build([core(0, (OFFLOAD, 0, 0), *compute, (OFFLOADED, 100, 100), (REDUCE, 150, 151))])
    host = comm_host(trace)
    names = [one.name for one in host.ops]
    assert host.n_runs[names.index("copy.1")].tolist() == expected


def test_a_loop_lies_around_what_begins_with_it() -> None:
    """The fusion that begins with the loop hides the gather; the loop itself hides nothing."""
    ops = ((LOOP, 0, 60), (FUSION, 0, 30), (GATHER, 30, 30), (FUSION, 35, 40), (GATHERED, 50, 60))
    trace = build([core(0, *ops), core(1, (LOOP, 0, 90), (LOOP, 0, 80), (FUSION, 0, 20), (REDUCE, 20, 70))])
    first, second = (exposed_marks(trace, plane) for plane in planes(trace).tensor_cores)
    assert list(zip((first.start_ps // PS).tolist(), (first.end_ps // PS).tolist(), strict=True)) == [
        (30, 35),
        (40, 60),
    ]
    assert list(zip((second.start_ps // PS).tolist(), (second.end_ps // PS).tolist(), strict=True)) == [
        (20, 70)
    ]
    assert [computing(one) for one in comm_devices(trace).activities] == [[(0, 30), (35, 40)], [(0, 20)]]


def test_operations_of_a_tensor_core_without_a_category_or_a_start() -> None:
    """By its name an all-to-all is one; a done whose start the trace lacks counts by itself."""
    ops = {
        "%all-to-all.3 = f32[8] all-to-all(%p)": 40,
        GATHERED: 60,
        REDUCE: 80,
        "%slice-done.4 = f32[8] x(%q)": 90,
    }
    made = [event(name, start, 5) for name, start in ops.items()]
    stats: dict[str, Stats] = {
        GATHERED: {"hlo_category": "all-gather"},
        REDUCE: {"hlo_category": "all-reduce"},
    }
    stats = {name: {"program_id": 7, **stats.get(name, {})} for name in ops}
    lines = {"Steps": [event("1", 0, 100)], "XLA Ops": made}
    devices = comm_devices(build([DrawnPlane("/device:TPU:0", lines, metadata_stats=stats)]))
    kinds = {one.name: (one.kind, one.traffic, one.is_async) for one in devices.ops}
    assert kinds == {
        "all-to-all.3": ("all-to-all", Traffic.DEVICES, False),
        "all-gather.4": ("all-gather", Traffic.DEVICES, True),
        "all-reduce.5": ("all-reduce", Traffic.DEVICES, False),
        "slice.4": ("slice", Traffic.LOCAL, True),
    }
    assert runs(devices.activities[0], devices.ops) == [
        ("all-to-all.3", 40, 45),
        ("all-gather.4", 60, 65),
        ("all-reduce.5", 80, 85),
        ("slice.4", 90, 95),
    ]


@pytest.mark.parametrize("n_before", [0, 1, 2])
def test_bytes_of_copies_by_their_place_in_the_program(tmp_path: Path, n_before: int) -> None:
    """Of the largest array of the start: 300 numbers of 4 bytes, not 100; the copy may come first."""
    both = {2: 13, 4: [array(100), array(300)]}
    before = [instruction(10 + i, "parameter", array(7)) for i in range(n_before)]
    start = {**instruction(1, "copy-start", both), 1: "copy-start.1"}
    program = proto(
        [computation(1, "main", [*before, start, instruction(2, "copy-done", array(300), [1])], 2)]
    )
    names = {"fusion.1": "loop fusion", "copy-start.1": "copy-start", "copy-done.1": "copy-done"}
    text = "copy-start.1:10-10 fusion.1:20-30 copy-done.1:40-50"
    run = write_run(tmp_path, drawn_pod([[text]], names, program))
    session = Session(str(run), cache=False)
    (copy,) = comm_devices(session.trace(session.hosts[0])).ops
    assert (copy.name, copy.size_bytes) == ("copy.1", 1200)


def test_kernels_launched_outside_of_steps_keep_their_own_names(tmp_path: Path) -> None:
    """One before and two after the steps; those of steps are the transfers that the file states."""
    said = stated("allreduce", 1024, 1024, "Float")
    reduce = Kernel(100, 200, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", said)
    data = rank_file(0, [[reduce, (350, 20)], [reduce, (340, 10)], [reduce, (360, 5)]], start_us=5000)
    outside = ((4600, 50, "ReduceScatter_Sum_f32"), (8500, 30, "Broadcast"), (8600, 7, "AllGather"))
    for number, (start, length, name) in enumerate(outside, 900):
        made = {"ph": "X", "ts": start - 100, "dur": 1, "pid": 100, "tid": 7, "args": {"correlation": number}}
        kernel = {**made, "ts": start, "dur": length, "pid": 0, "tid": 20, "cat": "kernel"}
        data["traceEvents"] += [
            {**made, "cat": "cuda_runtime", "name": "cudaLaunchKernel"},
            {**kernel, "name": f"ncclDevKernel_{name}_RING_LL"},
        ]
    (tmp_path / "r0.pt.trace.json").write_text(json.dumps(data))
    devices = comm_devices(Session(str(tmp_path), cache=False).trace("r0"))
    (device,) = devices.activities
    first = int(device.start_ps[1]) / PS
    found = [
        (name, round(start - first), round(end - start)) for name, start, end in runs(device, devices.ops)
    ]
    assert found == [
        ("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", -500, 50),
        ("all-reduce #1 of 0", 0, 200),
        ("all-reduce #1 of 0", 1000, 200),
        ("all-reduce #1 of 0", 2000, 200),
        ("ncclDevKernel_Broadcast_RING_LL", 3400, 30),
        ("ncclDevKernel_AllGather_RING_LL", 3500, 7),
    ]
    kinds = {one.name: one.kind for one in devices.ops}
    assert kinds["ncclDevKernel_Broadcast_RING_LL"] == "broadcast"


def random_host(rng: random.Random, n_steps: int, n_ops: int, n_cores: int) -> CommHost:
    """Rows of random operations in random steps of each core; each at most once."""
    places = [
        (c, s, o) for c in range(n_cores) for s in range(n_steps) for o in range(n_ops) if rng.random() < 0.6
    ]
    columns = [[place[i] for place in places] for i in range(3)]
    columns += [[rng.randint(0, 50) for _ in places] for _ in range(6)]
    rows = CommRows(*(np.array(column, np.int64) for column in columns))
    cores = tuple(PodCore(f"TPU:{i}", i, i) for i in range(n_cores))
    ops = tuple(CommOp(f"op{i}", "copy", Traffic.LOCAL) for i in range(n_ops))
    n_runs = np.array([[rng.randint(0, 9) for _ in range(3)] for _ in ops], np.int64).reshape(-1, 3)
    nothing = np.zeros((n_cores, n_steps), np.int64)
    by_traffic = np.zeros((n_cores, n_steps, 3), np.int64)
    pod: Any = None
    return CommHost(
        pod, cores, ops, nothing, nothing, nothing, by_traffic, by_traffic, by_traffic, rows, n_runs
    )


@pytest.mark.parametrize("seed", range(20))
def test_sums_of_a_host_s_common_steps(seed: int) -> None:
    """Operations of one name are one; steps before and after the common ones do not count, runs do."""
    rng = random.Random(f"sums {seed}")
    n_steps, n_ops, n_cores = rng.randint(1, 6), rng.randint(1, 5), rng.randint(1, 4)
    host = random_host(rng, n_steps, n_ops, n_cores)
    first = rng.randint(0, n_steps - 1)
    steps = slice(first, rng.randint(first + 1, n_steps))
    n = n_ops + 2
    code = np.array([rng.randrange(n) for _ in range(n_ops)], np.int64)
    sums: dict[int, list[int]] = defaultdict(lambda: [0] * 6)
    places: dict[int, set[tuple[int, int]]] = defaultdict(set)
    table = host.rows
    added = (table.hidden_ps, table.exposed_ps, table.elapsed_ps, table.n, table.n_bytes, table.n_unsized)
    for i in range(len(table.op)):
        at = int(code[table.op[i]])
        if steps.start <= table.step[i] < steps.stop:
            for column, values in enumerate(added):
                sums[at][column] += int(values[i])
            places[at].add((int(table.core[i]), int(table.step[i])))
    found = _sums(host, steps, code, n)
    for at in range(n):
        n_runs = [int(host.n_runs[code == at, column].sum()) for column in range(3)]
        assert found[at].tolist() == [*sums[at][:4], len(places[at]), *n_runs, *sums[at][4:]]


def test_hosts_whose_captures_begin_at_unlike_steps(tmp_path: Path) -> None:
    """The first of them lacks its first two steps: means are of the four that both have."""
    run = write_run(tmp_path / "all", comm_hosts())
    session = Session(str(run), cache=False)
    whole = [session.get(comm_host, host) for host in session.hosts]
    everything = join_comm(whole)
    assert everything.rows_of_host == (slice(0, 6), slice(0, 6))
    by_name = {one.op.name: one for one in everything.ops}
    alone = join_comm(whole[1:])
    assert {one.op.name for one in alone.ops} < set(by_name)
    assert alone.total_ps.shape == (2, 6)
    # Means per device: the half without an operation halves it.
    permute = next(one for one in alone.ops if one.op.name == "collective-permute.9")
    assert permute.total_ps == 2 * by_name["collective-permute.9"].total_ps


def test_copies_have_no_size_and_so_no_bandwidth() -> None:
    for name in ("MemcpyH2D", "MemcpyP2P", "ncclDevKernel_Generic(x)"):
        times = OpTimes(op_named(name), 1.0, 2.0, 3.0, 1.0, (0, 0, 1), None)
        assert (times.op.size_bytes, times.bytes_per_s) == (0, (None, None))
    sized = OpTimes(
        CommOp("copy.1", "copy", Traffic.HOST, True, (), 600), 1.0, 2.0, 4.0, 2.0, (0, 0, 1), None
    )
    assert sized.bytes_per_s == (600 * 2 / 4 * 1e12,) * 2
    assert replace(sized, elapsed_ps=0.0).bytes_per_s == (None, None)
    assert (sized.total_ps, sized.timed) == (3.0, None)


def test_waiting_of_the_pod_is_unknown_without_participants(tmp_path: Path) -> None:
    session = Session(str(write_run(tmp_path / "run", comm_hosts())), cache=False)
    comm = join_comm([session.get(comm_host, host) for host in session.hosts])
    assert comm.pod_wait_ps == pytest.approx(102.5 * PS)
    assert comm.pod.is_wait_known
    without = replace(comm.pod, collectives=())
    alone = replace(comm.pod, collectives=tuple(one for one in comm.pod.collectives if not one.is_wait_known))
    assert alone.collectives
    for pod in (without, alone, replace(comm.pod, part_ps=comm.pod.part_ps[:, :5])):
        assert replace(comm, pod=pod).pod_wait_ps is None
