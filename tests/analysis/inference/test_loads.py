"""What limits devices while they work: FLOPs and bytes by phase against planted ones."""

import numpy as np
import pytest

from tb_tpuprof.analysis.events.charging import union_ps, unions_ps
from tb_tpuprof.analysis.inference.loads import Load, host_loads, summed_loads
from tb_tpuprof.analysis.inference.names import Phase
from tb_tpuprof.analysis.ops.device_ops import device_ops
from tb_tpuprof.analysis.ops.roofline import total_work
from tb_tpuprof.session import Session
from tb_tpuprof.trace.trace import Trace
from tests.analysis.inference.serving import server
from tests.builders import PS, DrawnEvent, DrawnPlane, build, event
from tests.golden_files import DEMO_LOGS

# Per µs: 1e8 FLOPs and 1e6 bytes.
PEAKS = {"peak_teraflops_per_second": 100.0, "peak_hbm_bw_gigabytes_per_second": 1000.0}


def op(program: int, flops: int, n_bytes: int, category: str = "fusion") -> dict[str, int | str]:
    return {
        "program_id": program,
        "symbol_id": 1,
        "flops": flops,
        "bytes_accessed": n_bytes,
        "hlo_category": category,
    }


OPS = {
    "matmul": op(1, 4_000_000_000, 10_000_000),
    "softmax": op(1, 0, 3_000_000),
    "gemv": op(2, 50_000_000, 24_000_000),
    "while": op(2, 999_000_000, 99_000_000, "while"),
    "dot": op(3, 100_000_000, 1_000_000),
    "kernel": op(3, 0, 0, "custom-call"),
}


def engine(offset: int = 0) -> Trace:
    """A pass of each phase on a TPU; a decode's operation runs in a loop."""
    passes = [
        event("step[EXTEND bs=2 toks=8]", 0, 100),
        event("step[DECODE bs=32]", 200, 50),
        event("execute_context_1(5)_generation_3(3)", 300, 100),
    ]
    modules = [event("jit_p(1)", 10, 80), event("jit_d(2)", 210, 30), event("jit_m(3)", 310, 80)]
    ops = [
        event("matmul", 10, 50),
        event("softmax", 60, 30),
        event("while", 210, 30),
        event("gemv", 211, 28),
        event("dot", 310, 40),
        event("kernel", 350, 40),
    ]
    lines: dict[str, list[DrawnEvent]] = {"XLA Modules": modules, "XLA Ops": ops}
    for one in modules + ops:
        one.start_ps += offset * PS
    return build(
        [
            DrawnPlane("/host:CPU", {"engine": passes}),
            DrawnPlane("/device:TPU:0", lines, PEAKS, OPS),
        ]
    )


def test_phases_have_the_planted_work() -> None:
    loads = host_loads(engine())
    prefill, decode, mixed = (loads.of("", phase) for phase in (Phase.PREFILL, Phase.DECODE, Phase.MIXED))
    assert [load.n for load in (prefill, decode, mixed)] == [1, 1, 1]
    assert [load.device_ps for load in (prefill, decode, mixed)] == [80 * PS, 30 * PS, 80 * PS]
    assert prefill.flops_fraction == pytest.approx(4e9 / 8e9)
    assert prefill.hbm_fraction == pytest.approx(13e6 / 80e6)
    assert decode.flops_fraction == pytest.approx(5e7 / 3e9)
    assert decode.hbm_fraction == pytest.approx(24e6 / 30e6)
    assert (mixed.unknown_flops, mixed.unknown_bytes) == (0.5, 0.5)
    assert mixed.hbm_fraction == pytest.approx(1e6 / 80e6)
    assert [load.bound for load in (prefill, decode, mixed)] == ["compute", "memory", "unknown"]
    whole = loads.of("")
    assert (whole.n, whole.device_ps) == (3, 190 * PS)
    assert whole.flops == 4.15e9
    assert whole.unknown_flops == pytest.approx(40 / 190)
    assert (loads.kind, loads.knows_peaks, loads.phases("")) == (
        "TPU",
        True,
        (Phase.PREFILL, Phase.DECODE, Phase.MIXED),
    )


def test_the_work_is_that_of_the_roofline() -> None:
    trace = engine()
    ops = device_ops(trace)
    total = total_work(ops.work, ~ops.is_container)
    whole = host_loads(trace).of("")
    assert whole.flops == total.flops[0]
    assert whole.hbm_bytes == total.space_bytes[0, 0]


def test_work_outside_of_requests_does_not_count() -> None:
    # All programs start 150 µs later: that of the prefill outside, that of the decode in the mixed pass.
    loads = host_loads(engine(150))
    assert loads.of("", Phase.PREFILL).device_ps == 0
    assert loads.of("", Phase.PREFILL).bound == "unknown"
    assert loads.of("", Phase.MIXED).hbm_bytes == 24e6
    assert loads.of("").device_ps == 30 * PS


def test_phases_inside_of_requests() -> None:
    host = [event("generate", 0, 100), event("prefill", 5, 50), event("decode", 60, 30)]
    modules = [event("jit_p(1)", 10, 40), event("jit_d(2)", 61, 25), event("jit_x(2)", 92, 5)]
    ops = [event("matmul", 10, 40), event("gemv", 61, 25), event("softmax", 92, 5)]
    trace = build(
        [
            DrawnPlane("/host:CPU", {"main": host}),
            DrawnPlane("/device:TPU:0", {"XLA Modules": modules, "XLA Ops": ops}, PEAKS, OPS),
        ]
    )
    loads = host_loads(trace)
    assert loads.of("", Phase.PREFILL).flops == 4e9
    assert loads.of("", Phase.DECODE).flops == 5e7
    assert (loads.of("").device_ps, loads.of("").hbm_bytes) == (70 * PS, 37e6)
    assert loads.of("generate", Phase.DECODE) == loads.of("", Phase.DECODE)


def test_models_of_a_server_share_a_device() -> None:
    loads = host_loads(server())
    assert [loads.of(model).device_ps for model in ("", "cat:1", "dog:2")] == [40 * PS, 10 * PS, 30 * PS]
    assert [loads.of(model).n for model in ("", "cat:1", "dog:2")] == [3, 2, 1]
    assert loads.of("cow") == Load()


def test_hosts_add_up() -> None:
    one = host_loads(engine())
    both = summed_loads([one, host_loads(engine(150))])
    assert both.of("", Phase.MIXED).hbm_bytes == 25e6
    assert both.of("").device_ps == 220 * PS
    assert both.of("").max_flops == pytest.approx(220 * 1e8)


def load(flops: float, hbm: float, known: float = 1.0) -> Load:
    """A load with these shares of peaks, and of the time with known work."""
    return Load(1, 1, 100.0, 100 * known, 100 * known, flops, flops, hbm, 1.0, 1.0)


@pytest.mark.parametrize(
    ("given", "bound"),
    [
        (load(0.3, 0.1), "compute"),
        (load(0.1, 0.3), "memory"),
        (load(0.29, 0.29), "neither"),
        (load(0.4, 0.4), "compute"),
        (load(0.5, 0.3, 0.8), "compute"),
        (load(0.5, 0.31, 0.8), "unknown"),
        (load(0.05, 0.7, 0.4), "memory"),
        (load(0.05, 0.6, 0.4), "unknown"),
        (load(0.1, 0.1, 0.81), "neither"),
        (load(0.1, 0.1, 0.79), "unknown"),
        (load(0.1, 1.05), "memory"),
        (load(0.1, 1.06), "unknown"),
        (load(0.5, 0.5, 0.0), "unknown"),
        (Load(), "unknown"),
    ],
)
def test_a_limit_is_certain_or_unknown(given: Load, bound: str) -> None:
    assert given.bound == bound


def test_no_share_is_above_its_peak() -> None:
    assert load(0.1, 1.04).hbm_fraction == 1.0
    assert load(0.1, 1.06).hbm_fraction is None
    assert load(0.1, 1.06).is_above_a_peak
    assert not load(0.1, 1.04).is_above_a_peak


@pytest.mark.parametrize("scale", [1, 2**55])
def test_unions_by_key(scale: int) -> None:
    chance = np.random.default_rng(4)
    start = chance.integers(-9, 60, 200) * scale
    end = start + chance.integers(0, 9, 200) * scale
    key = chance.integers(0, 7, 200) * 2
    expected = [union_ps(start[key == k], end[key == k]) for k in range(14)]
    assert unions_ps(key, start, end, 14).tolist() == expected
    assert unions_ps(key[:0], start[:0], end[:0], 3).tolist() == [0, 0, 0]


def test_all_work_of_a_predicting_loop_is_that_of_its_requests() -> None:
    """A recorded loop in which nothing but requests runs: the loads are the whole of the roofline
    page's work.
    """
    session = Session(str(DEMO_LOGS / "jax_predict/plugins/profile/requests"), cache=False)
    trace = session.trace(session.hosts[0])
    ops = device_ops(trace)
    total = total_work(ops.work, ~ops.is_container)
    whole = host_loads(trace).of("")
    assert whole.flops == pytest.approx(total.flops[0], rel=1e-9)
    assert whole.hbm_bytes == pytest.approx(total.space_bytes[0, 0], rel=1e-9)
    assert (whole.n, whole.unknown_flops, whole.bound) == (240, 0.0, "unknown")
