"""Hardware, several hosts, verdicts and notices."""

import numpy as np
import pytest

from tb_tpuprof.analysis.device.hardware import Hardware, hardware
from tb_tpuprof.analysis.device.peaks import nvidia_flops_per_cycle
from tb_tpuprof.analysis.ops.metrics import no_ops
from tb_tpuprof.analysis.ops.recommend import finding
from tb_tpuprof.analysis.ops.roofline import limit_text
from tb_tpuprof.analysis.ops.stats import OpStats, op_stats
from tb_tpuprof.analysis.overview.summary import summary
from tb_tpuprof.analysis.steps import combine
from tb_tpuprof.analysis.steps.classes import N_CLASSES, TimeClass
from tb_tpuprof.analysis.steps.combine import common_steps, sum_hardware
from tb_tpuprof.analysis.steps.diagnostics import step_notices, trace_notices
from tb_tpuprof.analysis.steps.record import Steps, no_steps
from tests.builders import DrawnEvent, DrawnPlane, build, drawing

NO_OPS = OpStats(no_ops(), no_ops(), no_ops())
EVENT = {"line": [DrawnEvent("x", 0, 1)]}


def made(starts: list[int], length: int = 10, **classes: float) -> Steps:
    """Steps of one length, with shares of classes by name."""
    n = len(starts)
    class_ps = np.zeros((n, N_CLASSES), np.int64)
    for name, share in classes.items():
        class_ps[:, TimeClass[name]] = round(length * share)
    class_ps[:, 0] = length - class_ps.sum(axis=1)
    names = tuple(f"train {i}" for i in range(n))
    return Steps(
        np.arange(n), names, np.array(starts, np.int64), np.full(n, length, np.int64), class_ps, "annotation"
    )


def test_nvidia_peaks_follow_from_the_devices_shape() -> None:
    stats = {
        "compute_cap_major": 7,
        "compute_cap_minor": 0,
        "core_count": 80,
        "clock_rate": 1530000,
        "memory_bandwidth": 898048000000,
    }
    found = hardware(
        build([DrawnPlane("/device:GPU:0", EVENT, stats), DrawnPlane("/device:GPU:1", EVENT, stats)])
    )
    assert (found.kind, found.device, found.n_devices) == ("GPU", "NVIDIA GPU (Volta)", 2)
    assert found.peak_flops_per_s == pytest.approx(80 * 1024 * 1.53e9)
    assert found.peak_hbm_bytes_per_s == 898048000000


def test_amd_and_tpu_and_cpu() -> None:
    amd = {
        "device_vendor": "AMD",
        "compute_cap_major": 9,
        "compute_cap_minor": 4,
        "core_count": 304,
        "clock_rate": 2100000,
    }
    assert hardware(build([DrawnPlane("/device:GPU:0", EVENT, amd)])).device == "AMD GPU gfx942"
    tpu = {
        "device_type_string": "TPU v6 Lite",
        "peak_teraflops_per_second": 918.0,
        "peak_hbm_bw_gigabytes_per_second": 1638.0,
    }
    found = hardware(build([DrawnPlane("/device:TPU:0", EVENT, tpu)]))
    assert (found.device, found.peak_flops_per_s, found.peak_hbm_bytes_per_s) == (
        "TPU v6e",
        918e12,
        1638e9,
    )
    assert hardware(drawing("main [x ]")).kind == "CPU"


def test_unknown_generations_count_as_the_nearest_older() -> None:
    assert [nvidia_flops_per_cycle(*c) for c in ((9, 0), (12, 0), (12, 1), (10, 7), (8, 7), (1, 0))] == [
        4096,
        1024,
        1024,
        8192,
        1024,
        0,
    ]


def test_an_operation_is_bound_by_what_it_uses_most() -> None:
    machine = Hardware("GPU", "x", 1, 100.0, 100.0, 1000.0)
    found = [machine.nearest_limit(*rates) for rates in ((50, 20), (10, 20), (0, 0))]
    assert found == [("Compute", 0.5), ("HBM", 0.2), ("Unknown", 0.0)]
    limits = [limit_text(*nearest, name) for nearest, name in zip(found, ("dot", "add", "x"), strict=True)]
    assert limits == ["Compute", "Below every limit", "Unknown"]
    assert limit_text("HBM", 0.9, "jit(f)/copy-done.4") == "Waiting"
    assert sum_hardware([Hardware("CPU", "CPU", 0), machine]).device == "x"


def test_hosts_are_aligned_by_time() -> None:
    found = common_steps([made([0, 10, 20, 30]), made([11, 21, 31])], [0, 0])
    assert found.steps.start_ps.tolist() == [11, 21, 31]
    assert len(found.steps) == 3
    far = common_steps([made([0, 10]), made([0, 10])], [0, 2**60])
    assert far.is_disjoint
    assert not len(far.steps)
    shifted = common_steps([made([0, 10]), made([0, 10])], [0, 10])
    assert len(shifted.steps) == 2


@pytest.mark.parametrize("is_ordered", [True, False])
def test_the_shift_is_the_one_of_the_longest_overlap_the_first_of_equals(
    is_ordered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against every pair of steps counted one by one."""
    monkeypatch.setattr(combine, "_MOST_PAIRS", 50)
    rng = np.random.default_rng(4)
    for _ in range(200):
        begins, ends = [], []
        for _host in range(2):
            n, length = int(rng.integers(1, 30)), int(rng.integers(1, 15))
            begin = np.cumsum(rng.integers(0, 20, n)) + rng.integers(0, 60)
            end = begin + length
            order = np.arange(n) if is_ordered else rng.permutation(n)
            begins.append(begin[order])
            ends.append(end[order])
        (a, b), (a_end, b_end) = begins, ends
        totals = {
            shift: sum(
                max(min(a_end[i], b_end[i + shift]) - max(a[i], b[i + shift]), 0)
                for i in range(len(a))
                if 0 <= i + shift < len(b)
            )
            for shift in (*range(len(b)), *range(-1, -len(a), -1))
        }
        assert combine._best_shift(a, a_end, b, b_end) == max(totals, key=lambda shift: totals[shift])


def test_steps_of_hosts_are_averaged_and_still_sum_up() -> None:
    found = common_steps(
        [made([0, 10], 10, HOST_WAIT_INPUT=0.8), made([0, 10], 10, HOST_WAIT_INPUT=0.4)], [0, 0]
    ).steps
    assert found.category_ps("input").tolist() == [6, 6]
    assert np.array_equal(found.class_ps.sum(axis=1), found.duration_ps)


def test_hosts_without_steps_are_told_of() -> None:
    found = common_steps([made([0, 10]), no_steps()], [0, 0])
    assert (len(found.steps), found.n_without) == (2, 1)
    assert "1 of 2 hosts have no steps" in step_notices(found, 2, False)[0].message


@pytest.mark.parametrize(
    ("classes", "kind", "level", "category", "words"),
    [
        (
            {"HOST_WAIT_INPUT": 0.84, "HOST_COMPUTE": 0.16},
            "CPU",
            "bad",
            "input",
            "Highly input-bound: each step waits",
        ),
        ({"HOST_WAIT_INPUT": 0.06, "HOST_COMPUTE": 0.94}, "CPU", "warn", "input", "Moderately input-bound"),
        (
            {"HOST_COMPUTE": 0.5},
            "CPU",
            "bad",
            "other",
            "of each step was not recorded: it is Python or other host work, or waiting",
        ),
        ({"DEVICE_COMPUTE_32": 0.9}, "GPU", "warn", "other", "The GPU is idle for"),
        (
            {"DEVICE_COMPUTE_32": 0.6, "DEVICE_COLLECTIVES": 0.4},
            "GPU",
            "bad",
            "device_collectives",
            "Highly communication-bound",
        ),
        (
            {"DEVICE_COMPUTE_32": 0.8, "HOST_PREPARE": 0.2},
            "GPU",
            "bad",
            "kernel_launch",
            "Highly dispatch-bound",
        ),
        ({"DEVICE_COMPUTE_16": 0.99}, "GPU", "good", "device_compute", "Compute-bound: 99.0%"),
        ({"HOST_COMPUTE": 0.98}, "CPU", "good", "host_compute", "Compute-bound: 98.0%"),
    ],
)
def test_the_verdict_names_what_costs_most(
    classes: dict[str, float], kind: str, level: str, category: str, words: str
) -> None:
    found = finding(made([0, 1000], 1000, **classes), NO_OPS, kind)
    assert (found.level, found.category) == (level, category)
    assert words in found.text


def test_without_steps_the_largest_operation_is_named() -> None:
    assert finding(no_steps(), NO_OPS, "CPU").text == "The trace has neither steps nor operations."
    ops = op_stats(drawing("main  [Add:Add  ]"))
    found = finding(no_steps(), ops, "CPU")
    assert found.level == "unknown"
    assert found.text == (
        "The most expensive host operation is `Add`: 11.0 µs, 100% of the time of all host operations."
    )
    assert found.details == ("The trace has no steps, so there is no step time.",)


def test_mixed_precision_is_suggested_where_compute_is_32_bit() -> None:
    assert "mixed precision" in finding(made([0], 1000, DEVICE_COMPUTE_32=0.99), NO_OPS, "GPU").advice[0]


def test_notices_of_a_trace() -> None:
    trace = drawing("main [x ]", errors=("lost", "lost"), warnings=("slow",), n_damaged=2, damage="a line")
    assert [notice.severity for notice in trace_notices(trace)] == ["error", "warning", "warning"]
    assert "2 damaged parts" in trace_notices(trace)[2].message
    assert "no events" in trace_notices(drawing(""))[0].message
    idle = build([DrawnPlane("/host:CPU", EVENT), DrawnPlane("/device:GPU:0", {})])
    assert "accelerators' planes contain no events" in trace_notices(idle)[0].message


def test_notices_of_steps_say_what_to_do() -> None:
    none = common_steps([no_steps()], [0])
    assert "StepTraceAnnotation" in step_notices(none, 1, False)[0].remedy
    unmarked = step_notices(common_steps([no_steps(0, 3), no_steps(0, 1)], [0, 0]), 2, False)[0]
    assert "no line `Steps`" in unmarked.message
    assert "4 program runs" in unmarked.message
    assert "XLA Modules" in unmarked.remedy
    assert "v1 loops" in step_notices(none, 1, True)[0].message
    assert (
        "Found 3 steps without computation"
        in step_notices(common_steps([no_steps(3)], [0]), 1, False)[0].message
    )


def test_a_summary_of_an_empty_trace_is_empty() -> None:
    found = summary(drawing(""))
    assert (len(found.steps), len(found.ops.host), found.hardware.kind) == (0, 0, "CPU")
