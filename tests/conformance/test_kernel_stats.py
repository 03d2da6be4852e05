"""Kernels beside the peer's, row by row. Each deliberate difference stands here with its reason."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from tb_tpuprof.analysis.kernels.kernels import Kernels, kernels, merge_kernels
from tests.conformance.peer import NAMES, answer, open_session, rows

US = 1_000_000
Key = tuple[str, str, str, int]

# Runs in which every kernel names its operation as the peer has it. In the others we know more: the peer
# leaves empty the operation of kernels that a derived line of the file names, and of HLO instructions without
# a framework's name.
MORE_OPERATIONS = {
    "xprof_gpu_multi_worker__GPU-multi-worker": "kernels without `tf_op` are named by the line of operations "
    "in the file",
    "tracelens_mi300_jax__jax08_attention": "fusions without a framework's name are called by their "
    "instruction",
    "tracelens_mi300_jax__jax08_gemm": "copies without a framework's name are called by their instruction",
}


def ours(name: str) -> Kernels:
    session = open_session(name)
    return merge_kernels([kernels(session.trace(host)) for host in session.hosts])


def theirs(name: str) -> list[dict[str, Any]]:
    return rows(answer(name, "kernel_stats"))


def key_of(name: str, block: str, grid: str, registers: float) -> Key:
    return name, block, grid, int(max(0, registers))


@pytest.mark.parametrize("name", NAMES)
def test_counts_and_times_of_every_kernel_are_the_peer_s(name: str) -> None:
    """Rows of hosts (which the peer lists one below the other) and of operations are summed on both sides."""
    mine: dict[Key, list[float]] = defaultdict(lambda: [0, 0.0, 1e30, 0.0])
    peer: dict[Key, list[float]] = defaultdict(lambda: [0, 0.0, 1e30, 0.0])
    found = ours(name)
    for i, launch in enumerate(found.launch):
        key = key_of(found.name[i], launch.block, launch.grid, launch.n_registers)
        _add(
            mine[key],
            found.n_occurrences[i],
            found.total_ps[i] / US,
            found.min_ps[i] / US,
            found.max_ps[i] / US,
        )
    for row in theirs(name):
        key = key_of(row["kernel_name"], row["block_dim"], row["grid_dim"], row["registers_per_thread"])
        _add(
            peer[key],
            row["occurrences"],
            row["total_duration_us"],
            row["min_duration_us"],
            row["max_duration_us"],
        )
    assert set(mine) == set(peer)
    for key, values in mine.items():
        assert values == pytest.approx(peer[key], abs=2e-3), key


def _add(into: list[float], count: float, total: float, least: float, most: float) -> None:
    into[:] = [into[0] + count, into[1] + total, min(into[2], least), max(into[3], most)]


@pytest.mark.parametrize("name", NAMES)
def test_operations_are_the_peer_s_where_it_names_one(name: str) -> None:
    found = ours(name)
    mine: dict[tuple[str, str], int] = defaultdict(int)
    for kernel, op, n in zip(found.name, found.op, found.n_occurrences.tolist(), strict=True):
        mine[kernel, op] += n
    for (kernel, op), n in _by_op(name).items():
        if op:
            assert mine[kernel, op] == n, (kernel, op)
        elif name not in MORE_OPERATIONS:
            assert mine[kernel, ""] == n, kernel
    if name in MORE_OPERATIONS:
        assert any((kernel, op) not in _by_op(name) for kernel, op in mine), (
            "a listed difference no longer shows"
        )


def _by_op(name: str) -> dict[tuple[str, str], int]:
    result: dict[tuple[str, str], int] = defaultdict(int)
    for row in theirs(name):
        result[row["kernel_name"], row["op_name"]] += int(row["occurrences"])
    return result


@pytest.mark.parametrize("name", NAMES)
def test_tensor_cores_are_the_peer_s(name: str) -> None:
    """Of the operations that both name. On these runs even AMD's matrix kernels, which the peer tells by
    their operation.
    """
    found = ours(name)
    rows_of = zip(
        found.name, found.op, found.is_eligible.tolist(), found.uses_tensor_cores.tolist(), strict=True
    )
    mine = {(kernel, op): (eligible, uses) for kernel, op, eligible, uses in rows_of}
    for row in theirs(name):
        key = row["kernel_name"], row["op_name"]
        if row["op_name"]:
            assert mine[key] == (row["is_op_tensor_core_eligible"], row["is_kernel_using_tensor_core"]), key


@pytest.mark.parametrize("name", NAMES)
def test_occupancy_and_shared_memory(name: str) -> None:
    """Where the trace tells them. The peer prints 0 for unknown occupancy, and does not read AMD's
    `group_mem` nor the older `shm`.

    Where the trace tells no occupancy, ours is computed from the launch.
    """
    found = ours(name)
    mine = {
        key_of(found.name[i], one.block, one.grid, one.n_registers): one for i, one in enumerate(found.launch)
    }
    for row in theirs(name):
        one = mine[key_of(row["kernel_name"], row["block_dim"], row["grid_dim"], row["registers_per_thread"])]
        told = one.occupancy == one.occupancy and not one.is_computed
        assert (one.occupancy * 100 if told else 0) == pytest.approx(row["occupancy_pct"])
        assert row["shmem_bytes"] in (0, max(0, one.shared_bytes))
        if "tracelens" not in name and "multi_worker" not in name:
            assert row["shmem_bytes"] == max(0, one.shared_bytes)
    computed = {one.is_computed for one in found.launch if 0 < one.n_registers < 256}
    assert computed <= {"multi_worker" in name}
