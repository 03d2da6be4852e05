"""A TPU job drawn by hand whose cores overlap communication with compute, each in its own way.

Two hosts of two cores, six steps of 1 ms. In µs of each step, on core 0:

    XLA Ops     ▪ag-start  ■■■ fusion ■■■  ├ag-done┤ ■■ fusion ■■■■■■ ▪cp-done ├ all-reduce ─┤
    all-gather  ├──────────────────────────────────┤        hidden in part
    copy                             ├──────────────────────────────┤    to the host's memory, hidden
"""

from __future__ import annotations

from tests.ingest.hlo_protos import array, computation, instruction, proto
from tests.pod_drawing import drawn_pod

OPS = {
    "fusion.1": "loop fusion",
    "all-gather-start.7": "all-gather",
    "all-gather-done.7": "all-gather",
    "copy-start.5": "copy-start",
    "copy-done.5": "copy-done",
    "all-reduce.41": "all-reduce",
    "collective-permute-start.9": "collective-permute",
    "collective-permute-done.9": "collective-permute",
}
# Core by core. The all-reduce ends on all cores at 980 µs; core 3 computes for longest and arrives last.
CORES = (
    "all-gather-start.7:0-1 fusion.1:10-300 all-gather-done.7:300-400 copy-start.5:400-400 fusion.1:400-700 "
    "copy-done.5:700-710 all-reduce.41:720-980",
    "all-gather-start.7:0-1 fusion.1:20-350 all-gather-done.7:350-400 fusion.1:400-800 all-reduce.41:800-980",
    "collective-permute-start.9:0-1 fusion.1:1-500 collective-permute-done.9:500-500 fusion.1:500-760 "
    "all-reduce.41:760-980",
    "copy-start.5:0-0 copy-done.5:0-90 fusion.1:100-880 all-reduce.41:880-980",
)
BLOCK_BYTES = 4 * 512 * 512


def program() -> bytes:
    """The HLO of these operations: an all-gather in two groups, an all-reduce of all, a ring."""
    whole, half = array(512, 512), array(256, 512)
    pair = {2: 13, 4: [half, whole]}
    ops = [
        instruction(1, "parameter", half),
        {
            **instruction(2, "all-gather-start", pair, [1], f26=1, f49=[{1: (0, 1)}, {1: (2, 3)}]),
            1: "all-gather-start.7",
        },
        {**instruction(3, "all-gather-done", whole, [2]), 1: "all-gather-done.7"},
        {**instruction(4, "copy-start", {2: 13, 4: [whole, whole]}, [3]), 1: "copy-start.5"},
        {**instruction(5, "copy-done", whole, [4]), 1: "copy-done.5"},
        {**instruction(6, "all-reduce", whole, [5], f26=2, f49=[{1: (0, 1, 2, 3)}]), 1: "all-reduce.41"},
        {
            **instruction(
                7,
                "collective-permute-start",
                {2: 13, 4: [whole, whole]},
                [6],
                f26=3,
                f52=[{1: core, 2: (core + 1) % 4} for core in range(4)],
            ),
            1: "collective-permute-start.9",
        },
        {**instruction(8, "collective-permute-done", whole, [7]), 1: "collective-permute-done.9"},
    ]
    return proto([computation(1, "main", ops, 8)])


def comm_hosts(has_steps: bool = True, has_hlo: bool = True) -> dict[str, bytes]:
    """The files of both hosts."""
    return drawn_pod([CORES[:2], CORES[2:]], OPS, program() if has_hlo else b"", has_steps=has_steps)
