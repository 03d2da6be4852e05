"""The tree of compiled operations beside the peer's, node by node. Each deliberate difference stands here
with its reason.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from tb_tpuprof.tools.op_profile.view import TOOL
from tests.conformance.peer import answer, open_session
from tests.conformance.test_hlo_stats import RUNS, TPU
from tests.tools.test_hlo_stats import cells

Node = dict[str, Any]


def theirs(name: str, field: str) -> dict[str, Node]:
    """The peer's nodes by their way from the root; without the contents of fusions, which are in
    our details.
    """
    found: dict[str, Node] = {}

    def walk(node: Node, way: str) -> None:
        found[way] = node["metrics"]
        if "xla" in node and not node["name"].endswith("duplicate(s)"):
            return
        for child in node["children"]:
            walk(child, f"{way}/{child['name']}")

    walk(answer(name, "op_profile")[field], "all")
    return found


def mine(name: str, idle: bool) -> dict[str, Node]:
    """Ours, with groups of duplicates called as the peer does: by their longest member."""
    table = cells(TOOL.run(open_session(name), None, {"idle": str(idle).lower(), "limit": "10000"}), "nodes")
    ways: list[str] = []
    for row, (node, parent) in enumerate(zip(table["name"], table["parent"], strict=True)):
        label = node
        if table["kind"][row] == "duplicates":
            label = (
                f"{next(n for n, p in zip(table['name'], table['parent'], strict=True) if p == row)} and "
                "its duplicate(s)"
            )
        ways.append(f"{ways[int(str(parent))]}/{label}" if parent != -1 else "all")
    return {way: {key: values[row] for key, values in table.items()} for row, way in enumerate(ways)}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("idle", [True, False])
def test_nodes_and_times_are_the_peer_s(name: str, idle: bool) -> None:
    ours, peer = mine(name, idle), theirs(name, "byProgram" if idle else "byProgramExcludeIdle")
    # An IDLE node of no time is left out.
    assert set(ours) == {
        way for way, metrics in peer.items() if not (way == "all/IDLE" and not metrics["rawTime"])
    }
    for way, node in ours.items():
        assert node["self_time_ps"] == pytest.approx(peer[way]["rawTime"], rel=1e-9), way
        if peer[way]["occurrences"]:  # the peer counts them for categories and below
            assert node["n_occurrences"] == peer[way]["occurrences"]


@pytest.mark.parametrize("idle", [True, False])
def test_work_and_utilization_of_a_tpu_are_the_peer_s(idle: bool) -> None:
    """The peer multiplies FLOPS utilization with the share of the time; the root's leaves idle time out,
    where ours does not.
    """
    ours, peer = mine(TPU, idle), theirs(TPU, "byProgram" if idle else "byProgramExcludeIdle")
    for way, node in ours.items():
        metrics = peer[way]
        if way == "all/IDLE":
            continue
        assert node["model_flops"] == pytest.approx(metrics["rawFlops"])
        if "/copy-" not in way:  # the peer counts copies for both halves, see test_hlo_stats
            assert node["hbm_bytes"] == pytest.approx(metrics["rawBytesAccessedArray"][0])
            assert node["hbm_fraction"] == pytest.approx(metrics["bandwidthUtils"][0])
        if way != "all" or not idle:
            assert node["flops_fraction"] * node["time_fraction"] == pytest.approx(
                metrics["flops"], abs=1e-15
            )


@pytest.mark.parametrize("name", RUNS[1:])
def test_bytes_on_gpus_are_the_peer_s_where_the_models_agree(name: str) -> None:
    """Loop fusions; for the others see the reasons in test_hlo_stats."""
    ours, peer = mine(name, True), theirs(name, "byProgram")
    compared = [way for way, node in ours.items() if node["kind"] == "op" and "/loop fusion/" in way]
    assert compared
    for way in compared:
        assert ours[way]["hbm_bytes"] == pytest.approx(peer[way]["rawBytesAccessedArray"][0], rel=1e-6)
        assert not math.isnan(ours[way]["flops"])
