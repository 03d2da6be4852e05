"""Process groups of three unlike ranks: listed in the file, named by collectives, or both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.pod.process_groups import (
    ProcessGroup,
    process_groups,
    ranks_text,
    sum_process_groups,
)
from tb_tpuprof.ingest.opening import trace_of_bytes
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.trace.trace import Trace
from tests.ingest.chrome_files import opened
from tests.kineto_jobs import HOST, x
from tests.synthetic import PlaneWriter

STREAM = {"pid": 0, "tid": 7}
LISTED = [
    {
        "pg_name": "0",
        "pg_desc": "default_pg",
        "backend_config": "cuda:nccl",
        "pg_size": 4,
        "ranks": [0, 1, 2, 3],
    },
    {"pg_name": "3", "pg_desc": "undefined", "backend_config": "cpu:gloo", "pg_size": 2, "ranks": [1, 3]},
    {"pg_name": "9", "pg_size": 3, "ranks": [0, 1]},  # the list is not complete
    "nonsense",
    {"pg_name": "10", "pg_size": "many", "ranks": "all"},
]


def collective(ts: float, dur: float, correlation: int, **args: Any) -> list[dict[str, Any]]:
    facts = {
        "Collective name": "allreduce",
        "In msg nelems": 8,
        "Out msg nelems": 8,
        "dtype": "Float",
        **args,
    }
    return [
        x("cuda_runtime", "cudaLaunchKernel", correlation, 1, HOST, correlation=correlation),
        x(
            "kernel",
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            ts,
            dur,
            STREAM,
            device=0,
            stream=7,
            correlation=correlation,
            **facts,
        ),
    ]


def rank(folder: Path, *groups: list[dict[str, Any]], listed: Any = LISTED) -> Trace:
    info = {"backend": "nccl", "rank": 1, "world_size": 4, "pg_config": listed}
    events = [event for group in groups for event in group]
    return opened(
        folder, {"distributedInfo": info, "traceEvents": [x("cpu_op", "aten::mm", 0, 1, HOST), *events]}
    )


def default(ts: float, dur: float, correlation: int) -> list[dict[str, Any]]:
    more = {"Process Group Name": "0", "Process Group Description": "default_pg", "Group size": 4}
    return collective(ts, dur, correlation, **more)


def unlisted(ts: float, dur: float, correlation: int) -> list[dict[str, Any]]:
    more = {"Process Group Name": "7", "Process Group Description": "mesh_tp", "Group size": 2}
    return collective(ts, dur, correlation, **more, **{"Process Group Ranks": "[4, 5]"})


def test_listed_and_named_groups(tmp_path: Path) -> None:
    groups = process_groups(rank(tmp_path, default(10, 5, 1), default(20, 8, 2), unlisted(40, 30, 3)))
    assert groups == (
        ProcessGroup("7", "mesh_tp", "", 2, (4, 5), 1, 30 * 10**6),
        ProcessGroup("0", "default_pg", "cuda:nccl", 4, (0, 1, 2, 3), 2, 13 * 10**6),
        ProcessGroup("10", "", "", -1, ()),
        ProcessGroup("3", "", "cpu:gloo", 2, (1, 3)),
        ProcessGroup("9", "", "", 3, ()),
    )


def test_sums_of_hosts(tmp_path: Path) -> None:
    first = process_groups(rank(tmp_path, default(10, 5, 1)))
    second = process_groups(rank(tmp_path, default(10, 7, 1), unlisted(40, 3, 3), listed=[]))
    third = process_groups(rank(tmp_path, unlisted(40, 90, 3), listed=None))
    total = {
        group.name: (group.n_collectives, group.time_ps)
        for group in sum_process_groups([first, second, third])
    }
    # The second file does not list the default group, so its ranks are unknown there: a row of its own.
    assert total["7"] == (2, 93 * 10**6)
    assert sum_process_groups([first, second, third])[0].name == "7"
    assert sum(group.n_collectives for group in sum_process_groups([first, second]) if group.name == "0") == 2


def test_what_one_host_does_not_know_of_a_group_another_may() -> None:
    """Sizes, names and back ends of three hosts; groups of other ranks are others."""
    parts = (
        (ProcessGroup("1", size=3, ranks=(0, 1, 2), n_collectives=2, time_ps=7), ProcessGroup("2")),
        (ProcessGroup("1", "tp", ranks=(0, 1, 2), n_collectives=1, time_ps=20), ProcessGroup("2", size=2)),
        (
            ProcessGroup("1", "x", "nccl", 2, (0, 1, 2), 4, 100),
            ProcessGroup("1", "other", ranks=(3,), time_ps=5),
        ),
    )
    assert sum_process_groups(parts) == (
        ProcessGroup("1", "tp", "nccl", 3, (0, 1, 2), 7, 127),
        ProcessGroup("1", "other", "", -1, (3,), 0, 5),
        ProcessGroup("2", "", "", 2, (), 0, 0),
    )


def test_hostile_lists(tmp_path: Path) -> None:
    many = [{"pg_name": "x" * 1000, "pg_size": 2**40, "ranks": list(range(3))}] * 5000
    groups = process_groups(rank(tmp_path, listed=many))
    assert groups == (ProcessGroup("x" * 200, "", "", -1, ()),)
    for listed in ({}, "a", 3, [[]]):
        assert process_groups(rank(tmp_path, listed=listed)) == ()


@pytest.mark.parametrize(
    "text", ["[", "[1]", "[[]]", '[["0", "", "", "x", []]]', '[["0", "", "", 1, 7]]', "[" * 100_000, "{}", ""]
)
def test_another_writers_stat_of_the_same_name(text: str) -> None:
    """Any XSpace may give its planes a stat `comm_groups`."""
    space = xspace_class()()
    PlaneWriter(space, "/host:CPU").stats(space.planes[0], {"comm_groups": text})
    assert process_groups(trace_of_bytes(np.frombuffer(space.SerializeToString(), np.uint8), "h")) == ()


def test_ranks_as_text() -> None:
    assert ranks_text((0, 1, 2, 3)) == "0–3"
    assert ranks_text((0, 1)) == "0, 1"
    assert ranks_text((0, 2, 4)) == "0, 2, 4"
    assert ranks_text(()) == ""
    assert ranks_text(tuple(range(0, 32, 2))) == ", ".join(map(str, range(0, 32, 2)))
    assert ranks_text(tuple(range(0, 34, 2))) == ", ".join(map(str, range(0, 32, 2))) + ", … (17 ranks)"


def test_a_group_without_a_stated_size_has_none(tmp_path: Path) -> None:
    more = {"Process Group Name": "5", "Process Group Description": "mesh_dp"}
    groups = process_groups(rank(tmp_path, collective(10, 5, 1, **more), listed=[]))
    assert [(group.name, group.size, group.n_collectives) for group in groups] == [("5", -1, 1)]
