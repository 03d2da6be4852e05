"""A GPU's parts in the pod viewer are those of the overview, on captures of a real one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.pod.host import _own_windows, pod_host
from tb_tpuprof.analysis.pod.parts import Part, parts_of_classes
from tb_tpuprof.analysis.steps.classes import N_CLASSES
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.session import Session
from tests.synthetic import GpuJob, Parts, gpu_xspace, write_run

CAPTURES = sorted((Path(__file__).parents[2] / "data" / "gpu").glob("*.gz"))


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_a_single_gpu_s_parts_are_the_steps_own(path: Path) -> None:
    session = Session(str(path), cache=False)
    host_steps, parts = session.get(steps, session.hosts[0]), session.get(pod_host, session.hosts[0])
    assert len(parts.cores) == 1
    if len(host_steps):
        np.testing.assert_array_equal(parts.part_ps[0], parts_of_classes(host_steps.class_ps))
        np.testing.assert_array_equal(parts.total_ps[0], parts.part_ps[0].sum(axis=1))


def test_several_gpus_parts_sum_up_to_the_step(tmp_path: Path) -> None:
    job = GpuJob(Parts(0.5, 0.1, 0.05, 0.2), n_gpus=3)
    session = Session(str(write_run(tmp_path / "run", {"gpu": gpu_xspace(job)})), cache=False)
    parts = session.get(pod_host, "gpu")
    np.testing.assert_array_equal(parts.part_ps.sum(axis=2), parts.total_ps)
    assert (parts.part_ps >= 0).all()
    assert (parts.all_idle_ps <= parts.part_ps[:, :, Part.IDLE].min(axis=0)).all()


def test_a_gpu_that_did_its_part_at_another_time_has_a_span_of_its_own() -> None:
    """Three steps of a GPU: inside of the step's time, 650 before it, and none of it."""
    none = np.zeros((3, N_CLASSES), np.int64)
    drawn_steps = Steps(
        np.arange(3), ("a", "b", "c"), np.array([1000, 2000, 3000]), np.array([500, 400, 300]), none
    )
    start, end = np.array([1100, 1350, 1400]), np.array([1200, 1380, 1710])
    first, length = _own_windows(drawn_steps, (start, end, np.array([0, 1, 1])))
    assert first.tolist() == [1000, 1350, 3000]
    assert length.tolist() == [500, 360, 300]
