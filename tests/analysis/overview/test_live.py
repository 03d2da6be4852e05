"""The sample of a short profile: each number is what the overview says of the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tpuprof.analysis.overview.live import LiveSample
from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.session import Session, measure
from tb_tpuprof.tools.overview_page import view as overview_page
from tests.ingest.xspaces import small_xspace
from tests.synthetic import GpuJob, Parts, TpuJob, gpu_xspace, tpu_xspace

DEMO_LOGS = Path(__file__).resolve().parents[3] / "demo_logs"
_TPU = TpuJob(parts=Parts(compute=0.6, infeed=0.2, outfeed=0.03, collective=0.05), n_cores=4)
PLANTED = {
    "tpu": tpu_xspace(_TPU),
    "tpu_late_cores": tpu_xspace(TpuJob(parts=Parts(compute=0.5, infeed=0.2), n_cores=4, core_delay=0.02)),
    "tpu_without_steps": tpu_xspace(TpuJob(parts=Parts(compute=0.5), has_steps=False)),
    "gpu": gpu_xspace(GpuJob(parts=Parts(compute=0.5, infeed=0.1, outfeed=0.02, collective=0.2), n_gpus=2)),
    "cpu": small_xspace(),
}


def overview(data: bytes, folder: Path) -> dict[str, float | None]:
    """The overview's scalars of a run with that one file."""
    (folder / "h.xplane.pb").write_bytes(data)
    payload = overview_page.TOOL.run(Session(str(folder), cache=False), None, {})
    return {name: scalar.value for name, scalar in payload.scalars.items()}


def check(found: LiveSample, said: dict[str, float | None]) -> None:
    """Every number that both know."""
    assert found.step_time_avg_ps == said["step_time_avg_ps"]
    assert found.step_time_min_ps == said["step_time_min_ps"]
    assert found.step_time_max_ps == said["step_time_max_ps"]
    assert found.n_steps == said["n_steps"]
    assert found.input_fraction_avg == said["input_fraction"]
    assert found.device_idle_fraction == said.get("device_idle_fraction")
    assert found.matrix_unit_fraction == said.get("flops_fraction")


@pytest.mark.parametrize("name", PLANTED)
def test_planted_jobs(name: str, tmp_path: Path) -> None:
    found = measure(PLANTED[name])
    check(found, overview(PLANTED[name], tmp_path))


@pytest.mark.parametrize(
    "path", sorted(DEMO_LOGS.glob("*/plugins/profile/*/*.xplane.pb")), ids=lambda path: path.name
)
def test_captured_jobs(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    found = measure(memoryview(data))
    check(found, overview(data, tmp_path))
    assert found.n_steps
    assert found.device_type == "CPU"


def test_obvious_numbers() -> None:
    """Steps of 1 ms on 4 cores: 20% infeed, 50 GFLOP in each on a core of 197 TFLOP/s, 12% idle besides."""
    found = measure(PLANTED["tpu"])
    assert (found.device_type, found.n_cores) == ("TPU v5e", 4)
    assert found.step_time_min_ps == found.step_time_max_ps == 1_000_000_000
    assert found.input_fraction_min == pytest.approx(0.2)
    assert found.input_fraction_max == pytest.approx(0.2)
    assert found.matrix_unit_fraction == pytest.approx(50e9 / (197e12 * 1e-3), rel=0.01)
    assert found.device_idle_fraction == pytest.approx(0.12, abs=0.01)


def test_what_is_not_known_is_none() -> None:
    found = measure(PLANTED["tpu_without_steps"])
    assert (found.n_steps, found.step_time_avg_ps, found.input_fraction_avg) == (0, None, None)


@pytest.mark.parametrize("data", [b"", b"garbage", small_xspace()[:-9]])
def test_bytes_that_are_no_profile(data: bytes) -> None:
    with pytest.raises(TraceFormatError, match="the profile"):
        measure(data)
