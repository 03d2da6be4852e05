"""The facts of a run on drawn devices that differ in everything, and on generated runs with planted times."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tb_tpuprof.analysis.overview.facts import RunFacts, host_facts, run_facts
from tb_tpuprof.tools.facts import FACTS, devices_text, fact_scalars, idle_text, summed_text
from tests.builders import PS, DrawnPlane, build, drawing, drawn_planes
from tests.ingest.xspaces import native
from tests.synthetic import GpuJob, Parts, TpuJob, gpu_xspace, tpu_xspace

# Three GPUs of four: 20 µs with 12 µs busy on two streams that overlap, 10 µs all busy, 12 µs with 6 µs busy;
# the last ran nothing.
UNLIKE = """
    /device:GPU:0:
      a   [k     ]      [k ]
      b     <k   >
    /device:GPU:1:
      a           [k       ]
    /device:GPU:2:
      a               [k ]      [k ]
"""


def of(text: str, **info: object) -> RunFacts:
    return run_facts([host_facts(drawing(text, **info))])


def test_devices_that_ran_something_are_active() -> None:
    planes = [*drawn_planes(UNLIKE), DrawnPlane("/device:GPU:3")]
    facts = run_facts([host_facts(build(planes))])
    assert (facts.n_active, facts.n_present) == (3, 4)
    assert devices_text(facts) == "3 (4 present)"
    assert of("main  [x ]").n_active == 0
    idle = run_facts([host_facts(build([DrawnPlane(f"/device:GPU:{i}") for i in range(3)]))])
    assert devices_text(idle) == "3 (no operations recorded)"
    assert devices_text(of("main  [x ]")) == "0"


def test_device_time_is_the_sum_of_the_devices_spans_and_busy_its_part() -> None:
    facts = of(UNLIKE)
    times = facts.hosts[0].devices
    assert [span // PS for span in times.span_ps] == [18, 10, 14]
    assert [busy // PS for busy in times.busy_ps] == [12, 10, 8], "streams that run side by side count once"
    assert facts.device_time_ps == (18 + 10 + 14) * PS
    assert facts.device_busy_ps == (12 + 10 + 8) * PS
    assert facts.mean_idle_fraction == pytest.approx(1 - 30 / 42)
    assert times.union_span_ps == 26 * PS
    assert facts.union_idle_fraction == pytest.approx(1 - times.union_busy_ps / times.union_span_ps)
    assert facts.idle_fraction == facts.mean_idle_fraction
    assert summed_text(facts, facts.device_time_ps) == "summed over 3 GPUs; 14.0 µs each"
    assert idle_text(facts) == "mean of 3 GPUs, of 14.0 µs from the first operation to the last"


def test_no_device_has_no_device_time() -> None:
    facts = of("main  [train     ]", stats=None)
    scalars = fact_scalars(facts, *(spec.name for spec in FACTS))
    assert (scalars["device_time_ps"].value, scalars["device_idle_fraction"].value) == (None, None)
    assert scalars["step_time_avg_ps"].note == "no steps were found"


@pytest.mark.parametrize(("n_cores", "parts"), [(1, Parts(0.7)), (3, Parts(0.6, 0.2, 0.03, 0.05))])
def test_a_tpus_idle_time_is_what_its_operations_leave(n_cores: int, parts: Parts) -> None:
    facts = run_facts([host_facts(native(tpu_xspace(TpuJob(parts=parts, n_cores=n_cores))))])
    assert facts.n_active == n_cores
    assert facts.mean_idle_fraction == pytest.approx(parts.idle)
    assert facts.device_time_ps == n_cores * 6 * TpuJob().step_ps


def test_several_hosts_are_summed_and_their_steps_averaged() -> None:
    jobs = [
        replace(TpuJob(parts=Parts(0.5)), n_cores=i + 1, step_ps=TpuJob().step_ps * (10 + i) // 10)
        for i in range(3)
    ]
    facts = run_facts([host_facts(native(tpu_xspace(job))) for job in jobs])
    assert facts.n_active == 1 + 2 + 3
    assert facts.device_time_ps == sum(job.n_cores * job.n_steps * job.step_ps for job in jobs)
    assert facts.step_time_ps == pytest.approx(1.1 * TpuJob().step_ps, rel=1e-6)
    scalars = fact_scalars(facts, "step_time_avg_ps", "n_hosts", "device_time_ps")
    assert (scalars["step_time_avg_ps"].note, scalars["n_hosts"].value) == ("mean over 3 hosts", 3)
    assert scalars["device_time_ps"].note.startswith("summed over 6 cores; ")


def test_gpus_with_steps_idle_within_them_when_none_works() -> None:
    facts = run_facts([host_facts(native(gpu_xspace(GpuJob(Parts(compute=0.6), n_gpus=3))))])
    assert facts.idle_fraction == facts.union_idle_fraction
    assert idle_text(facts) == "of the steps: none of the 3 GPUs works"


@pytest.mark.parametrize(
    ("gap_s", "is_disjoint"), [(0.0, False), (0.5, False), (3.0, True), (148 * 86_400.0, True)]
)
def test_hosts_that_were_captured_at_different_times_share_no_steps(gap_s: float, is_disjoint: bool) -> None:
    """Clocks that nobody synchronised may be half a second off; captures that lie further apart
    are not one.
    """
    jobs = [
        GpuJob(Parts(compute=share), start_ns=10**15 + round(i * gap_s * 1e9))
        for i, share in enumerate((0.6, 0.3, 0.8))
    ]
    facts = run_facts([host_facts(native(gpu_xspace(job))) for job in jobs])
    assert facts.common.is_disjoint == is_disjoint
    assert (facts.step_time_ps is None) == is_disjoint
    if is_disjoint:
        assert facts.idle_fraction is None
        assert (
            fact_scalars(facts, "step_time_avg_ps")["step_time_avg_ps"].note == "the captures do not overlap"
        )
