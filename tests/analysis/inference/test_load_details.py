"""Loads at limits: several devices, models and phases against plain loops, and shares without a peak."""

from __future__ import annotations

from dataclasses import astuple, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.inference.loads import HostLoads, Load, host_loads, summed_loads
from tb_tpuprof.analysis.inference.names import Phase
from tb_tpuprof.analysis.inference.piece_work import _piece_of, piece_work
from tb_tpuprof.analysis.inference.work import Part
from tests.analysis.inference.serving import server
from tests.analysis.inference.test_loads import OPS, PEAKS, engine, load
from tests.builders import PS, DrawnEvent, DrawnPlane, build, event

# (request, its phase, start in µs; its kernels as device, start and end in µs)
Kernels = list[tuple[int, int, int]]
WORK: list[tuple[str, str, int, Kernels]] = [
    ("generate", "prefill", 0, [(0, 10, 30), (0, 20, 40), (1, 10, 25), (2, 12, 19)]),
    ("generate", "decode", 100, [(0, 110, 113), (1, 110, 111)]),
    ("answer", "prefill", 200, [(1, 205, 250)]),
    ("answer", "decode", 300, [(0, 310, 314), (2, 310, 316)]),
    ("answer", "decode", 400, [(0, 410, 421)]),
    ("predict", "", 500, [(0, 505, 517), (1, 506, 590)]),
    ("predict", "", 600, []),
]


def covered(kernels: Kernels) -> int:
    """µs in which a device works, summed over devices."""
    return len({(device, moment) for device, start, end in kernels for moment in range(start, end)})


def test_device_time_by_model_and_phase_is_summed_over_devices() -> None:
    host: list[DrawnEvent] = []
    streams: dict[int, list[list[DrawnEvent]]] = {0: [[], []], 1: [[], []], 2: [[], []]}
    correlation = 0
    for name, phase, start, kernels in WORK:
        host.append(event(name, start, 95))
        host += [event(phase, start + 1, 90)] if phase else []
        for i, (device, begin, end) in enumerate(kernels):
            correlation += 1
            host.append(event("cudaLaunchKernel", start + 2 + i, 1, correlation_id=correlation))
            kernel = event("gemv", begin, end - begin, correlation_id=correlation)
            streams[device][i % 2].append(kernel)
    gpus = [
        DrawnPlane(f"/device:GPU:{i}", {"Stream #1": one, "Stream #2": other})
        for i, (one, other) in streams.items()
    ]
    loads = host_loads(build([DrawnPlane("/host:CPU", {"main": host}), *gpus]))
    for model in ("", "generate", "answer", "predict"):
        for phase in ("", "prefill", "decode"):
            chosen = [
                (name, kernels)
                for name, stated, _, kernels in WORK
                if model in ("", name) and phase in ("", stated)
            ]
            one = loads.of(model, {"": Phase.NONE, "prefill": Phase.PREFILL, "decode": Phase.DECODE}[phase])
            expected = sum(covered(kernels) for _, kernels in chosen)
            assert (one.n, one.device_ps) == (len(chosen), expected * PS), (model, phase)
    assert loads.phases("answer") == (Phase.PREFILL, Phase.DECODE)
    assert loads.phases("predict") == ()
    assert (loads.kind, loads.knows_peaks) == ("GPU", False)


def test_operations_belong_to_the_run_that_they_start_in() -> None:
    """One begins with the first run, one with its end, one before it; the second core has another length."""
    cores = [
        DrawnPlane(
            f"/device:TPU:{i}",
            {
                "XLA Modules": [event("jit_p(1)", 10, 50), event("jit_p(1)", 70, length)],
                "XLA Ops": [
                    event("softmax", 2, 5),
                    event("softmax", 10, 5),
                    event("matmul", 20, 40),
                    event("softmax", 60, 7),
                    event("softmax", 70, length - 1),
                    event("without a program", 70 + length - 1, 1),
                ],
            },
            PEAKS,
            OPS,
        )
        for i, length in enumerate((20, 9, 4))
    ]
    loads = host_loads(build([DrawnPlane("/host:CPU", {"main": [event("predict", 0, 99)]}), *cores]))
    whole = loads.of("")
    assert whole.device_ps == sum(50 + length for length in (20, 9, 4)) * PS
    assert whole.worked_ps == sum(5 + 40 + length for length in (20, 9, 4)) * PS
    assert whole.flops_ps == whole.bytes_ps == whole.worked_ps - 3 * PS
    assert whole.hbm_bytes == 3 * (2 * 3_000_000 + 10_000_000)
    assert whole.flops == 3 * OPS["matmul"]["flops"]
    assert whole.max_flops == pytest.approx(183 * 1e8)
    assert whole.max_bytes == pytest.approx(183 * 1e6)


def test_a_core_without_operations_shows_only_that_its_program_runs() -> None:
    lines = {"XLA Modules": [event("jit_p(1)", 10, 50)]}
    host = DrawnPlane("/host:CPU", {"main": [event("predict", 0, 99)]})
    whole = host_loads(build([host, DrawnPlane("/device:TPU:0", lines, PEAKS)])).of("")
    assert (whole.device_ps, whole.worked_ps, whole.flops_ps, whole.unknown_flops) == (50 * PS, 50e6, 0, 1)
    assert whole.bound == "unknown"


@pytest.mark.parametrize("missing", list(PEAKS))
def test_one_peak_is_not_both(missing: str) -> None:
    peaks = {name: rate for name, rate in PEAKS.items() if name != missing}
    host = DrawnPlane("/host:CPU", {"main": [event("predict", 0, 99)]})
    lines = {"XLA Modules": [event("jit_p(1)", 10, 50)], "XLA Ops": [event("matmul", 10, 50)]}
    loads = host_loads(build([host, DrawnPlane("/device:TPU:0", lines, peaks, OPS)]))
    assert not loads.knows_peaks
    assert (loads.of("").flops_fraction is None) == ("flops" in missing)
    assert (loads.of("").hbm_fraction is None) == ("hbm" in missing)
    assert loads.of("").bound == "unknown"


def test_shares_of_times_are_between_none_and_all() -> None:
    assert Load(1, 1, 100.0, 25.0, 60.0).unknown_flops == 0.75
    assert Load(1, 1, 100.0, 25.0, 60.0).unknown_bytes == 0.4
    assert Load(1, 1, 100.0, 101.0, 130.0).unknown_flops == 0.0
    assert Load(1, 1, 100.0, 101.0, 130.0).unknown_bytes == 0.0
    assert Load(1, 1, 0.0, 0.0, 0.0).unknown_flops == 1.0
    assert Load(1, 1, 0.5, 0.5, 0.25).unknown_flops == 0.0


def test_one_amount_above_its_peak_suffices() -> None:
    for flops, hbm in ((1.06, 0.1), (0.1, 1.06), (1.06, 1.06)):
        one = load(flops, hbm)
        assert one.is_above_a_peak
        assert (one.flops_fraction is None, one.hbm_fraction is None) == (flops > 1, hbm > 1)
        assert one.bound == "unknown"
    assert not load(1.05, 1.05).is_above_a_peak
    assert not replace(load(1.06, 1.06), max_flops=0.0, max_bytes=0.0).is_above_a_peak
    assert replace(load(0.4, 0.4), flops_ps=0.0).flops_fraction is None
    assert replace(load(0.4, 0.4), bytes_ps=0.0).hbm_fraction is None
    assert replace(load(0.4, 0.4), flops_ps=0.0).hbm_fraction == 0.4


def test_the_tolerance_is_of_the_peak() -> None:
    """Of a peak of 4 up to 4.2."""
    for amount, is_above in ((4.1, False), (4.3, True)):
        one = replace(load(0.1, 0.1), max_flops=4.0, roof_flops=amount)
        assert (one.is_above_a_peak, one.flops_fraction is None) == (is_above, is_above)


def test_a_run_with_one_operation_works_for_as_long_as_that() -> None:
    """An operation that waits is known to do nothing, whatever its work is."""
    waiting = {"infeed": {"program_id": 1, "symbol_id": 2, "hlo_category": "infeed"}}
    host = DrawnPlane("/host:CPU", {"main": [event("predict", 0, 299)]})
    lines = {
        "XLA Modules": [event("jit_p(1)", 10, 50), event("jit_p(1)", 70, 50), event("jit_p(1)", 150, 50)],
        "XLA Ops": [event("dot", 15, 30), event("infeed", 70, 20)],
    }
    whole = host_loads(build([host, DrawnPlane("/device:TPU:0", lines, PEAKS, {**OPS, **waiting})])).of("")
    assert (whole.device_ps, whole.worked_ps) == (150 * PS, (30 + 20 + 50) * PS)
    assert (whole.flops_ps, whole.bytes_ps) == (50 * PS, 50 * PS)


def test_peaks_of_all_hosts_are_known_if_those_of_each_with_work_are() -> None:
    one, other, none = host_loads(engine()), host_loads(engine(150)), HostLoads({}, "TPU", False)
    third = HostLoads({("", Phase.NONE): load(0.1, 0.2), ("m", Phase.DECODE): load(0.3, 0.1)}, "TPU", True)
    summed = summed_loads([one, other, none, third])
    assert summed.knows_peaks
    assert (summed.kind, summed.of("m", Phase.DECODE)) == ("TPU", load(0.3, 0.1))
    assert summed.of("").n == 3 + 3 + 1
    assert summed.of("").flops == one.of("").flops + other.of("").flops + 0.1
    assert summed_loads([one, replace(third, kind="GPU")]).kind == "TPU"
    assert not summed_loads([one, replace(third, knows_peaks=False), other]).knows_peaks


def test_nothing_is_no_load() -> None:
    assert astuple(HostLoads({}, "TPU", True).of("any")) == (0,) * 10


def test_equal_shares_are_the_nearer_peak_s() -> None:
    """A quarter of the time has unknown FLOPs, so up to half of the peak may be used: as much as of HBM's."""
    one = replace(load(0.25, 0.5), flops_ps=75.0)
    assert (one.flops_fraction, one.unknown_flops, one.unknown_bytes) == (0.25, 0.25, 0.0)
    assert one.bound == "memory"
    assert replace(one, hbm_bytes=0.49).bound == "unknown"
    other = replace(load(0.5, 0.25), bytes_ps=75.0)
    assert other.bound == "compute"
    assert replace(other, roof_flops=0.49).bound == "unknown"


def test_cores_that_lack_programs_or_operations_work_nevertheless() -> None:
    """Three cores: one without programs, one with both, one without operations."""
    host = DrawnPlane("/host:CPU", {"main": [event("predict", 0, 99)]})
    ops, modules = [event("matmul", 10, 50)], [event("jit_p(1)", 10, 50)]
    cores = [
        DrawnPlane(f"/device:TPU:{i}", lines, PEAKS, OPS)
        for i, lines in enumerate(
            ({"XLA Ops": ops}, {"XLA Modules": modules, "XLA Ops": ops}, {"XLA Modules": modules})
        )
    ]
    whole = host_loads(build([host, *cores])).of("")
    assert (whole.device_ps, whole.worked_ps) == (150 * PS, 150 * PS)
    assert (whole.flops, whole.flops_ps) == (8_000_000_000, 100 * PS)


def test_only_work_on_devices_has_pieces() -> None:
    """Copies of 5 and 7 µs are no work, and an operation that is in none of the stretches counts in none."""
    host = [event("predict", 0, 99), *(event("cudaLaunchKernel", i, 1, correlation_id=i) for i in (1, 3, 5))]
    stream = [
        event("MemcpyHToD", 10, 5, correlation_id=1),
        event("gemv", 20, 9, correlation_id=3),
        event("MemcpyDToH", 40, 7, correlation_id=5),
    ]
    trace = build([DrawnPlane("/host:CPU", {"main": host}), DrawnPlane("/device:GPU:0", {"s": stream})])
    assert sorted(piece_work(trace).worked_ps.tolist()) == [0, 0, 9 * PS]
    done: Any = SimpleNamespace(
        part=np.array([Part.DEVICE, Part.TO_HOST, Part.DEVICE, Part.DEVICE]), event=np.array([9, 4, 2, 7])
    )
    assert _piece_of(done, np.array([2, 3, 4, 7, 9, 11])).tolist() == [2, -1, -1, 3, 0, -1]
    none: Any = SimpleNamespace(part=np.array([Part.TO_HOST]), event=np.array([2]))
    assert _piece_of(none, np.array([2, 3])).tolist() == [-1, -1]


def test_marks_and_work_of_batches_have_the_models_of_their_batches() -> None:
    """Work outside of requests has no model; the server's marks are inside of its requests."""
    loads = host_loads(server())
    assert set(loads.loads) == {(model, Phase.NONE) for model in ("", "cat:1", "dog:2")}
    marks = [event("BatchingSessionRun", 0, 50, model_id="cat"), event("prefill", 5, 20)]
    beside = [event("prefill", 60, 20)]
    launches = [event("cudaLaunchKernel", at, 1, correlation_id=i + 1) for i, at in enumerate((6, 61))]
    kernels = [
        event("gemv", at, length, correlation_id=i + 1) for i, (at, length) in enumerate(((8, 9), (63, 4)))
    ]
    host = DrawnPlane("/host:CPU", {"a": [*marks, launches[0]], "b": [*beside, launches[1]]})
    found = host_loads(build([host, DrawnPlane("/device:GPU:0", {"s": kernels})]))
    assert {key: (one.n, one.device_ps) for key, one in found.loads.items()} == {
        ("", Phase.NONE): (1, 9 * PS),
        ("", Phase.PREFILL): (2, 9 * PS),
        ("cat", Phase.NONE): (1, 9 * PS),
        ("cat", Phase.PREFILL): (1, 9 * PS),
    }
