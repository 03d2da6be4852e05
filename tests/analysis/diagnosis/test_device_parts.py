"""What the host does while devices are idle: parts of accelerators' steps, on made-up and on
captured files.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.names import Origin, names
from tb_tpuprof.analysis.diagnosis.parts import parts
from tb_tpuprof.analysis.diagnosis.torch_files import is_framework, is_library
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.session import Session
from tb_tpuprof.trace.trace import Trace
from tests.ingest.chrome_files import written
from tests.kineto_jobs import BACKWARD, HOST, RANKS, Job, kineto_file, x

DATA = Path(__file__).parents[2] / "data"
CORPUS = Path(os.environ.get("TPUPROF_CORPUS", "none"))
US = 1_000_000


def opened(path: Path) -> Trace:
    session = Session(str(path), cache=False)
    return session.trace(session.hosts[0])


def check_sums(trace: Trace) -> None:
    """Parts of a class add up to the class, step by step: the breakdown and the diagnosis cannot contradict
    each other.
    """
    trace_steps = steps(trace)
    if not len(trace_steps):
        return
    by_class = np.zeros_like(trace_steps.class_ps)
    for part in parts(trace):
        by_class[:, part.klass] += part.time_ps
    np.testing.assert_array_equal(by_class, trace_steps.class_ps)


@pytest.mark.parametrize("job", RANKS, ids=lambda job: f"rank{job.rank}")
def test_parts_add_up_to_the_classes_of_made_up_files(tmp_path: Path, job: Job) -> None:
    check_sums(opened(kineto_file(tmp_path, job)))


@pytest.mark.parametrize(
    "path",
    sorted([*DATA.glob("gpu/*.gz"), *DATA.glob("gpu_planted/*.gz")]),
    ids=lambda path: path.name.split(".")[0],
)
def test_parts_add_up_to_the_classes_of_captured_files(path: Path) -> None:
    check_sums(opened(path))


@pytest.mark.slow
def test_parts_add_up_to_the_classes_of_the_corpus() -> None:
    if not CORPUS.is_dir():
        pytest.skip("TPUPROF_CORPUS is not set")
    n = 0
    for folder in ("kineto_samples", "tracelens_torch", "hta", "xprof_gpu_multi_worker"):
        for path in sorted((CORPUS / folder).rglob("*")):
            if path.name.endswith((".json", ".json.gz", ".xplane.pb")):
                try:
                    trace = opened(path)
                except ProfilerError:
                    continue
                check_sums(trace)
                n += 1
    assert n > 30


def test_idle_time_has_the_cause_of_the_hosts_work(tmp_path: Path) -> None:
    """One step of 1000 µs, of which a kernel runs for 100."""
    events = [
        x("user_annotation", "ProfilerStep#1", 0, 1000, HOST),
        x("cpu_op", "aten::mm", 100, 200, HOST),
        x("cuda_runtime", "cudaLaunchKernel", 250, 50, HOST, correlation=1),
        x("kernel", "gemm", 310, 100, {"pid": 0, "tid": 7}, correlation=1, device=0, stream=7),
        x("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 450, 100, BACKWARD),
        x("cuda_runtime", "cudaLaunchKernel", 500, 20, BACKWARD, correlation=2),
        x("kernel", "gemm", 560, 40, {"pid": 0, "tid": 7}, correlation=2, device=0, stream=7),
        x("cuda_runtime", "cudaDeviceSynchronize", 540, 160, HOST),
    ]
    trace = opened(written(tmp_path, events, "w.pt.trace.json"))
    check_sums(trace)
    time = dict.fromkeys(Cause, 0)
    for part in parts(trace):
        time[part.cause] += int(part.time_ps.sum())
    assert time[Cause.COMPUTE] == 140 * US
    assert time[Cause.DISPATCH] == (200 + 90) * US  # the last 10 µs of 100 are the synchronizing call's
    assert time[Cause.SYNCHRONIZATION] == (20 + 100) * US
    assert time[Cause.UNRECORDED] == (1000 - 140 - 290 - 120) * US
    assert {part.call for part in parts(trace) if part.cause == Cause.DISPATCH and not part.culprit.name} >= {
        "autograd::engine::evaluate_function: MmBackward0"
    }


def test_a_loader_that_launches_kernels_is_the_model(tmp_path: Path) -> None:
    events = [
        x("user_annotation", "ProfilerStep#1", 0, 1000, HOST),
        x("user_annotation", "run_batch", 50, 800, HOST),
        x("cpu_op", "aten::mm", 100, 300, HOST),
        x("cuda_runtime", "cudaLaunchKernel", 250, 50, HOST, correlation=1),
        x("kernel", "gemm", 420, 100, {"pid": 0, "tid": 7}, correlation=1, device=0, stream=7),
    ]
    trace = opened(written(tmp_path, events, "w.pt.trace.json"))
    assert not [part for part in parts(trace) if part.cause == Cause.INPUT]


@pytest.mark.parametrize(
    ("name", "framework", "library"),
    [
        ("torch/nn/modules/linear.py(124): forward", True, False),
        ("/usr/lib/python3/dist-packages/torch/_ops.py(1): __call__", True, False),
        ("transformers/models/vit/modeling_vit.py(280): forward", False, True),
        ("moca/runner/image_model.py(37): run_on_input", False, False),
        ("train.py(12): main", False, False),
        ("nn.Module: Linear_0", False, False),
    ],
)
def test_files_of_pytorch_and_of_installed_packages_are_not_the_users(
    name: str, framework: bool, library: bool
) -> None:
    assert (is_framework(name), is_library(name)) == (framework, library)


def test_frames_of_a_captured_file_have_their_origin() -> None:
    trace = opened(DATA / "gpu_planted" / "torch_item.pt.trace.json.gz")
    origin = dict(zip(metadata_names(trace), names(trace).origin.tolist(), strict=True))
    mine = {name for name, of in origin.items() if of == Origin.USER}
    assert {name.rpartition(": ")[2] for name in mine} >= {"train_step", "log_loss", "smooth_curve"}
    assert not [name for name in mine if name.startswith("torch/")]


def test_classes_of_a_part_are_those_of_its_step() -> None:
    """Loader time that overlaps with kernels is hidden: only the charged time counts."""
    trace = opened(DATA / "gpu" / "torch_loader4.pt.trace.json.gz")
    waited = sum(
        int(part.time_ps.sum())
        for part in parts(trace)
        if part.cause == Cause.INPUT and part.klass == TimeClass.HOST_WAIT_INPUT
    )
    assert waited == int(steps(trace).class_ps[:, TimeClass.HOST_WAIT_INPUT].sum())
