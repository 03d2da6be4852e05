"""The pod viewer beside the peer's recorded answers.

Deliberate differences: steps at both ends that the overview leaves out too are left out; each GPU is a core
of its own, so that kernels of the peer's one core are spread over ours; host events inside others of their
class and Python calls are counted by our sweep (`test_steps.py` gives the reasons), so of CPUs step times and
input are compared.
"""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.analysis.pod.host import PodHost, pod_host
from tb_tpuprof.analysis.pod.parts import Part
from tests.conformance.peer import NAMES, answer, open_session

PS_PER_US = 1_000_000


def ours(name: str) -> PodHost:
    session = open_session(name)
    return session.get(pod_host, session.hosts[0])


def theirs(name: str) -> dict[str, dict[str, float]]:
    """The peer's first core by step: total and input, in ps."""
    found = {}
    for step in answer(name, "pod_viewer")["podStatsSequence"]["podStatsMap"]:
        record = step["podStatsPerCore"]["1"]
        found[str(step["stepNum"])] = {"total": record["totalDurationUs"], **record["stepBreakdownUs"]}
    return found


@pytest.mark.parametrize("name", NAMES)
def test_runs_without_steps_are_those_of_the_peer(name: str) -> None:
    peer, mine = theirs(name), ours(name)
    if mine.steps.name == ("capture",) or name.startswith(("own_tf_cpu__keras", "tracelens", "reactant")):
        assert (
            not peer
        )  # where the peer has none, we may have the whole capture or what kernels and functions tell
    else:
        assert bool(peer) == bool(len(mine.steps))


@pytest.mark.parametrize("name", ["own_jax_cpu__mlp", "own_tf_cpu__remote_capture"])
def test_steps_of_hosts_last_as_long_and_wait_as_long_for_input(name: str) -> None:
    peer, mine = theirs(name), ours(name)
    totals = sorted(record["total"] for record in peer.values())
    own = sorted((mine.total_ps[0] / PS_PER_US).tolist())
    assert len(own) in (len(totals), len(totals) - 2)
    for value in own:
        assert np.isclose(value, totals, rtol=1e-9).any()
    if name == "own_jax_cpu__mlp":
        # Its batches come of a generator in Python, whose frames the peer counts as computing;
        # `tests/truth/test_input.py` proves ours.
        assert (mine.part_ps[0, :, Part.INPUT] > 0).any()
        return
    by_total = {round(record["total"], 3): record["6"] for record in peer.values()}
    for value, waited in zip(
        mine.total_ps[0] / PS_PER_US, mine.part_ps[0, :, Part.INPUT] / PS_PER_US, strict=True
    ):
        assert waited == pytest.approx(by_total[round(float(value), 3)], rel=1e-6)


def test_kernels_of_the_peer_s_core_are_those_of_our_gpus() -> None:
    name = "xprof_gpu_multi_worker__GPU-multi-worker"
    ((_, record),) = theirs(name).items()
    mine = ours(name)
    # A GPU that did its part of the step at another time has a span of its own; the peer has one core per
    # host.
    assert mine.total_ps[:, 0].max() / PS_PER_US == pytest.approx(record["total"])
    assert mine.part_ps[:, 0, Part.COMPUTE].max() / PS_PER_US == pytest.approx(record["1"], rel=1e-6)
