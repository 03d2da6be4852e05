"""A GPU's parts in the pod viewer are those of the overview, on captures of a real one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.pod import pod_host
from tb_tpuprof.analysis.pod_parts import Part, parts_of_classes
from tb_tpuprof.analysis.steps import steps
from tb_tpuprof.session import Session
from tests.synthetic import GpuJob, Parts, gpu_xspace, write_run

CAPTURES = sorted((Path(__file__).parents[1] / "data" / "gpu").glob("*.gz"))


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_a_single_gpu_s_parts_are_the_steps_own(path: Path) -> None:
    session = Session(str(path), cache=False)
    found, parts = session.get(steps, session.hosts[0]), session.get(pod_host, session.hosts[0])
    assert len(parts.cores) == 1
    if len(found):
        np.testing.assert_array_equal(parts.part_ps[0], parts_of_classes(found.class_ps))
        np.testing.assert_array_equal(parts.total_ps[0], parts.part_ps[0].sum(axis=1))


def test_several_gpus_parts_sum_up_to_the_step(tmp_path: Path) -> None:
    job = GpuJob(Parts(0.5, 0.1, 0.05, 0.2), n_gpus=3)
    session = Session(str(write_run(tmp_path / "run", {"gpu": gpu_xspace(job)})), cache=False)
    parts = session.get(pod_host, "gpu")
    np.testing.assert_array_equal(parts.part_ps.sum(axis=2), parts.total_ps)
    assert (parts.part_ps >= 0).all()
    assert (parts.all_idle_ps <= parts.part_ps[:, :, Part.IDLE].min(axis=0)).all()
