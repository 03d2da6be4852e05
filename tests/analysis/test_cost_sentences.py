"""The verdict on steps in words, at both sides of the limits that pages state; and on operations without steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.ops.category_sentence import (
    DeviceIdle,
    OpCategories,
    category_sentence,
    sum_categories,
    verdict_by_category,
)
from tb_tpuprof.analysis.ops.metrics import (
    Occurrences,
    OpMetrics,
    add_up,
    by_framework_op,
    no_ops,
    sum_by,
    sum_occurrences,
)
from tb_tpuprof.analysis.ops.recommend import (
    Finding,
    apart_finding,
    costs,
    eager_fraction,
    finding,
    input_finding,
    is_fed,
    largest_op,
    on_worst_host,
    precision,
    spread_sentence,
)
from tb_tpuprof.analysis.ops.roofline import LIMITS, Roofs, first_roofs, in_words, limit_text, ratio
from tb_tpuprof.analysis.ops.stats import OpStats
from tb_tpuprof.analysis.ops.utilization import Utilization, _core_of, idle_fraction, sum_utilization
from tb_tpuprof.analysis.steps.classes import N_CLASSES, TimeClass
from tb_tpuprof.analysis.steps.record import Steps

MS = 10**9
NO_OPS = OpStats(no_ops(), no_ops(), no_ops())


def steps_of(*steps: dict[str, int], duration: int = 1000) -> Steps:
    """Steps of a second, with so many milliseconds of classes in each; the rest is computing on the device."""
    class_ps = np.zeros((len(steps), N_CLASSES), np.int64)
    for i, parts in enumerate(steps):
        for name, ms in parts.items():
            class_ps[i, TimeClass[name]] += ms * MS
        class_ps[i, TimeClass.DEVICE_COMPUTE_32] += duration * MS - class_ps[i].sum()
    number = np.arange(len(steps))
    lengths = np.full(len(steps), duration * MS)
    return Steps(number, tuple(map(str, number)), number * duration * MS, lengths, class_ps, "annotation")


@pytest.mark.parametrize(
    ("part", "category", "moderate", "high"),
    [
        ("HOST_WAIT_INPUT", "input", 50, 200),
        ("DEVICE_TO_HOST", "output", 50, 200),
        ("HOST_PREPARE", "kernel_launch", 30, 150),
        ("DEVICE_COLLECTIVES", "device_collectives", 30, 150),
        ("HOST_COMPILE", "compilation", 30, 150),
        ("HOST_PYTHON", "host_python", 30, 150),
        ("HOST_WAIT", "host_wait", 30, 150),
        ("UNKNOWN", "other", 30, 150),
    ],
)
def test_shares_from_which_a_cost_is_moderate_or_high(
    part: str, category: str, moderate: int, high: int
) -> None:
    """Of a thousand milliseconds."""
    for spent, severity in ((moderate - 1, 0), (moderate, 1), (high - 1, 1), (high, 2)):
        found = {cost.category: cost for cost in costs(steps_of({part: spent}))}
        assert {name: cost.severity for name, cost in found.items() if cost.severity} == (
            {category: severity} if severity else {}
        )
        assert (found[category].fraction, found[category].mean_ps) == (
            pytest.approx(spent / 1000),
            spent * MS,
        )
        level = ("good", "warn", "bad")[severity]
        verdict = finding(steps_of({part: spent}), NO_OPS, "GPU")
        assert (verdict.level, verdict.category) == (level, category if severity else "device_compute")


def test_the_worst_cost_comes_first_and_input_before_others_of_its_severity() -> None:
    order = [
        cost.category
        for cost in costs(
            steps_of({"HOST_PYTHON": 160, "UNKNOWN": 300, "HOST_WAIT_INPUT": 60, "HOST_PREPARE": 90})
        )
        if cost.severity
    ]
    assert order == ["other", "host_python", "input", "kernel_launch"]
    even = steps_of({"UNKNOWN": 400, "HOST_WAIT_INPUT": 200})
    assert [cost.category for cost in costs(even)[:2]] == ["input", "other"]


@pytest.mark.parametrize(
    ("kind", "parts", "text"),
    [
        ("GPU", {"HOST_WAIT_INPUT": 60}, "Moderately input-bound: each step waits 60.0 ms (6.00%) for data."),
        ("GPU", {"HOST_WAIT_INPUT": 260}, "Highly input-bound: each step waits 260 ms (26.0%) for data."),
        (
            "GPU",
            {"HOST_WAIT": 60},
            "Each step waits 60.0 ms (6.00%); the trace does not show what for, possibly for data.",
        ),
        ("GPU", {"HOST_PYTHON": 160}, "Highly Python-bound: each step spends 160 ms (16.0%) in Python."),
        (
            "GPU",
            {"DEVICE_TO_HOST": 60},
            "Moderately transfer-bound: each step spends 60.0 ms (6.00%) copying results back to the host.",
        ),
        (
            "GPU",
            {"HOST_PREPARE": 160},
            "Highly dispatch-bound: each step spends 160 ms (16.0%) launching kernels.",
        ),
        (
            "TPU",
            {"DEVICE_COLLECTIVES": 40},
            (
                "Moderately communication-bound: each step spends 40.0 ms (4.00%) in collectives between"
                " devices."
            ),
        ),
        (
            "TPU",
            {"HOST_COMPILE": 40},
            "Moderately compilation-bound: each step spends 40.0 ms (4.00%) compiling.",
        ),
        (
            "CPU",
            {"UNKNOWN": 40},
            (
                "40.0 ms (4.00%) of each step was not recorded: it is Python or other host work, or waiting,"
                " possibly for data."
            ),
        ),
        (
            "CPU",
            {"UNKNOWN": 40, "HOST_WAIT_INPUT": 1},
            (
                "40.0 ms (4.00%) of each step was not recorded: it is Python or other host work between"
                " operations."
            ),
        ),
        (
            "GPU",
            {"UNKNOWN": 40},
            (
                "The GPU is idle for 40.0 ms (4.00%) of each step: it waits for host work that was not"
                " recorded, possibly for data."
            ),
        ),
        (
            "TPU",
            {"UNKNOWN": 40, "HOST_WAIT_LOADER": 1},
            (
                "The TPU is idle for 40.0 ms (4.00%) of each step, besides waits for data: it waits for host"
                " work that was not recorded."
            ),
        ),
        (
            "GPU",
            {"HOST_WAIT_INPUT": 49},
            "Compute-bound: 95.1% of each step is spent computing on the GPU; no other cost is significant.",
        ),
        (
            "CPU",
            {"HOST_COMPUTE": 700},
            "Compute-bound: 70.0% of each step is spent computing on the host; no other cost is significant.",
        ),
    ],
)
def test_the_sentence_of_each_cost(kind: str, parts: dict[str, int], text: str) -> None:
    assert finding(steps_of(parts), NO_OPS, kind).text == text


def test_other_costs_follow_and_the_largest_operation_explains_a_healthy_run() -> None:
    verdict = finding(
        steps_of({"HOST_WAIT_INPUT": 260, "HOST_PREPARE": 40, "HOST_PYTHON": 29}), NO_OPS, "GPU"
    )
    assert verdict.costs == (
        "Moderately dispatch-bound: each step spends 40.0 ms (4.00%) launching kernels.",
    )
    healthy = finding(steps_of({}), OpStats(no_ops(), OPS, OPS), "GPU")
    assert healthy.why == (
        "The most expensive device operation is `b`: 60.0 ms, 60.0% of the time of all device operations.",
    )
    assert healthy.more == healthy.why


def ops_of(**more: Any) -> OpMetrics:
    """Three unlike operations of 10, 60 and 30 ms of their own."""
    columns: dict[str, Any] = {
        "name": ("a", "b", "c"),
        "type": ("A", "", "C"),
        "n_occurrences": np.array([1, 2, 5]),
        "time_ps": np.array([40, 60, 30]) * MS,
        "self_ps": np.array([10, 60, 30]) * MS,
        "is_eager": np.array([True, False, False]),
        "span_ps": 150 * MS,
        "program": (0, 0, 0),
        "provenance": ("", "", "s/c:C"),
        "flops": np.array([1.0, 2.0, 4.0]),
        "model_flops": np.array([1.0, 2.0, 3.0]),
        "n_bytes": np.array([5.0, 6.0, np.nan]),
    }
    return OpMetrics(**(columns | more))


OPS = ops_of()


def test_the_largest_operation() -> None:
    device = OpStats(no_ops(), OPS, OPS)
    end = ", 60.0% of the time of all device operations."
    assert (
        largest_op(device, "TPU", 4)
        == f"The most expensive device operation is `b`: 60.0 ms summed over 4 cores{end}"
    )
    assert (
        largest_op(device, "GPU", 2)
        == f"The most expensive device operation is `b`: 60.0 ms summed over 2 GPUs{end}"
    )
    assert (
        largest_op(device, "XPU", 2)
        == f"The most expensive device operation is `b`: 60.0 ms summed over 2 devices{end}"
    )
    assert largest_op(device, "GPU", 1) == f"The most expensive device operation is `b`: 60.0 ms{end}"
    host = largest_op(OpStats(OPS, no_ops(), no_ops()), "CPU", 3)
    assert (
        host == "The most expensive host operation is `b`: 60.0 ms, 60.0% of the time of all host operations."
    )
    assert largest_op(NO_OPS, "GPU", 1) == ""
    assert largest_op(OpStats(ops_of(self_ps=np.zeros(3, np.int64)), no_ops(), no_ops()), "CPU", 1) == ""


@pytest.mark.parametrize(
    ("parts", "kind", "level", "category", "text"),
    [
        (
            {"HOST_WAIT_INPUT": 49},
            "GPU",
            "good",
            "input",
            "Not input-bound: each step waits 49.0 ms (4.90%) for data.",
        ),
        ({}, "GPU", "good", "input", "Not input-bound: no step waits for data."),
        (
            {"HOST_WAIT_LOADER": 250},
            "GPU",
            "bad",
            "input",
            "Highly input-bound: each step waits 250 ms (25.0%) for data.",
        ),
        (
            {"HOST_WAIT": 30},
            "GPU",
            "warn",
            "host_wait",
            (
                "Possibly input-bound: no waiting for data was traced, but each step waits 30.0 ms (3.00%),"
                " and the trace does not show what for."
            ),
        ),
        (
            {"HOST_WAIT": 40, "HOST_WAIT_INPUT": 10},
            "GPU",
            "warn",
            "host_wait",
            (
                "Possibly input-bound: each step waits 10.0 ms (1.00%) for data, but each step waits 40.0 ms"
                " (4.00%), and the trace does not show what for."
            ),
        ),
        (
            {"UNKNOWN": 30},
            "GPU",
            "warn",
            "other",
            (
                "Possibly input-bound: no waiting for data was traced, but for 30.0 ms (3.00%) of each step"
                " the GPU had no work, which may also be time spent waiting for data."
            ),
        ),
        (
            {"UNKNOWN": 30},
            "CPU",
            "warn",
            "other",
            (
                "Possibly input-bound: no waiting for data was traced, but for 30.0 ms (3.00%) of each step"
                " nothing traced ran, which may also be time spent waiting for data."
            ),
        ),
        (
            {"UNKNOWN": 30, "HOST_WAIT_INPUT": 10},
            "CPU",
            "good",
            "input",
            "Not input-bound: each step waits 10.0 ms (1.00%) for data.",
        ),
    ],
)
def test_the_verdict_on_the_input_alone(
    parts: dict[str, int], kind: str, level: str, category: str, text: str
) -> None:
    found = input_finding(steps_of(parts), kind)
    assert (found.level, found.category, found.text) == (level, category, text)


def test_what_else_the_verdict_on_the_input_says() -> None:
    launches = "Moderately dispatch-bound: each step spends 40.0 ms (4.00%) launching kernels."
    parts = {"UNKNOWN": 30, "HOST_WAIT_INPUT": 10, "HOST_PREPARE": 40}
    assert input_finding(steps_of(parts), "CPU").costs == (
        (
            "30.0 ms (3.00%) of each step is Python or other work between operations, not waiting for data:"
            " each step's fetch from the input pipeline was traced."
        ),
        launches,
    )
    assert input_finding(steps_of(parts), "GPU").costs == (launches,)
    assert input_finding(steps_of({"HOST_PREPARE": 40, "HOST_WAIT": 40}), "GPU").costs == (launches,)
    assert input_finding(steps_of(), "GPU").text.startswith("Whether the job waits for input is unknown")


@pytest.mark.parametrize(("n_fed", "is_enough"), [(10, True), (9, True), (8, False)])
def test_nine_of_ten_steps_that_fetch_data_are_fed(n_fed: int, is_enough: bool) -> None:
    steps = steps_of(*[{"HOST_WAIT_INPUT": 1}] * n_fed, *[{}] * (10 - n_fed))
    assert is_fed(steps, "CPU") == is_enough
    assert not is_fed(steps, "GPU")
    assert not is_fed(steps_of(), "CPU")


def test_one_host_that_waits_behind_a_mean_that_does_not() -> None:
    good = Finding("good", "device_compute", "Compute-bound.", ("detail",), ("cost",))
    moderate, high = steps_of({"HOST_WAIT_INPUT": 60}), steps_of({"HOST_WAIT_INPUT": 300})
    text = (
        "Highly input-bound on h: each of its steps waits 300 ms (30.0%) for data, and the other hosts wait"
        " for it."
    )
    assert on_worst_host(good, "h", high) == Finding(
        "bad", "input", text, ("detail",), ("Over all hosts: Compute-bound.", "cost")
    )
    assert on_worst_host(good, "h", steps_of({"HOST_WAIT_INPUT": 49})) is good
    assert on_worst_host(good, "h", steps_of()) is good
    warned = Finding("warn", "input", "x")
    assert on_worst_host(warned, "h", moderate) is warned
    assert on_worst_host(warned, "h", high).level == "bad"
    bad = Finding("bad", "compilation", "x", (), ("cost",))
    added = on_worst_host(bad, "h", moderate)
    assert (added.level, added.text, len(added.costs)) == ("bad", "x", 2)
    assert added.costs[0].startswith("Moderately input-bound on h: each of its steps waits 60.0 ms (6.00%)")
    assert on_worst_host(bad, "h", high).category == "input"


def test_hosts_that_were_captured_apart() -> None:
    verdicts = [
        ("a", Finding("good", "x", "A.")),
        ("b", Finding("bad", "y", "B.")),
        ("c", Finding("unknown", "", "C.")),
    ]
    found = apart_finding(verdicts)
    assert (found.level, found.category, found.details) == ("bad", "y", ("`b`: B.", "`c`: C.", "`a`: A."))
    assert found.text.startswith("The captures of 3 hosts do not overlap in time")


def test_steps_that_take_more_than_twice_the_average() -> None:
    steps = steps_of({}, {}, {})
    assert spread_sentence(steps) == ""
    twice = replace(steps, duration_ps=np.array([4, 1, 1]))
    assert spread_sentence(twice) == ""
    longer = replace(steps, duration_ps=np.array([5, 1, 1]))
    assert spread_sentence(longer) == "Step times vary: the slowest step took 2.14 times the average."
    assert spread_sentence(replace(steps_of({}), duration_ps=np.array([4]))) == ""


def test_shares_of_16_bit_and_eager_work() -> None:
    steps = steps_of({"DEVICE_COMPUTE_16": 100}, {"DEVICE_COMPUTE_16": 500})
    assert precision(steps) == pytest.approx((0.3, 0.7))
    assert precision(steps_of({"UNKNOWN": 1000})) is None
    assert (eager_fraction(3, 4), eager_fraction(3, 0)) == (0.75, 0.0)
    few = steps_of({"DEVICE_COMPUTE_16": 99})
    assert finding(few, NO_OPS, "GPU", "JAX").advice == (
        (
            "Only 9.90% of the device compute time is 16-bit: computing in bfloat16 (mixed precision) may"
            " save time."
        ),
    )
    assert finding(steps_of({}), NO_OPS, "GPU", "?").advice == (
        "None of the device compute time is 16-bit: mixed precision may save time.",
    )
    assert finding(steps_of({"DEVICE_COMPUTE_16": 100}), NO_OPS, "GPU").advice == ()
    assert finding(few, NO_OPS, "TPU").advice == ()
    eager = ops_of(is_eager=np.array([True, False, True]))
    full = steps_of({"DEVICE_COMPUTE_16": 1000})
    for ops, framework, n in ((eager, "TensorFlow", 1), (eager, "", 1), (eager, "JAX", 0), (OPS, "", 0)):
        assert (
            len(finding(full, OpStats(no_ops(), ops, ops), "GPU", framework).advice) == n
        )  # above 10%, OPS has 10%


def categories(times: dict[str, int], offload: int = 0, n: int = 1, kind: str = "TPU") -> OpCategories:
    return OpCategories({name: ms * MS for name, ms in times.items()}, offload * MS, n, kind)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            categories({"fusion": 70, "copy-done": 30}),
            "`fusion` takes 70.0% of the operations' time on the TPU: 70.0 ms.",
        ),
        (
            categories({"fusion": 70, "copy": 30}, n=2),
            (
                "`fusion` takes 70.0% of the operations' time on the TPU: 70.0 ms summed over 2 cores, 35.0"
                " ms per core."
            ),
        ),
        (
            categories({"fusion": 70, "copy": 30}, n=2, kind="GPU"),
            (
                "`fusion` takes 70.0% of the operations' time on the GPU: 70.0 ms summed over 2 GPUs, 35.0 ms"
                " per GPU."
            ),
        ),
        (
            categories({"fusion": 70, "copy": 30}, n=2, kind="CPU"),
            "`fusion` takes 70.0% of the operations' time on the CPU: 70.0 ms.",
        ),
        (
            categories({"fusion": 40, "copy": 20, "copy-done": 25, "async-done": 15}),
            (
                "40.0% of the operations' time on the TPU is waiting for asynchronous copies and others"
                " (mostly `copy-done`): 40.0 ms."
            ),
        ),
        (
            categories({"fusion": 40, "copy-done": 57, "async-done": 3}),
            (
                "60.0% of the operations' time on the TPU is waiting for asynchronous copies (`copy-done`):"
                " 60.0 ms."
            ),
        ),
        (
            categories({"fusion": 40, "copy-done": 56, "async-done": 4}),
            (
                "60.0% of the operations' time on the TPU is waiting for asynchronous copies and others"
                " (mostly `copy-done`): 60.0 ms."
            ),
        ),
        (
            categories({"fusion": 40, "async-done": 60}),
            (
                "60.0% of the operations' time on the TPU is waiting for asynchronous operations"
                " (`async-done`): 60.0 ms."
            ),
        ),
        (
            categories({"fusion": 40, "all-reduce-done": 60}),
            (
                "60.0% of the operations' time on the TPU is waiting for transfers between devices"
                " (`all-reduce-done`): 60.0 ms."
            ),
        ),
        (
            categories({"fusion": 40, "infeed": 50, "copy-done": 10}),
            "60.0% of the operations' time on the TPU is waiting for the host (`infeed`): 60.0 ms.",
        ),
        (
            categories({"fusion": 40, "copy-done": 60}, 57),
            (
                "60.0% of the operations' time on the TPU is waiting for host-offload copies (`copy-done`):"
                " 60.0 ms."
            ),
        ),
        (
            categories({"fusion": 40, "copy-done": 60}, 56),
            (
                "60.0% of the operations' time on the TPU is waiting for asynchronous copies (`copy-done`):"
                " 60.0 ms."
            ),
        ),
        (
            categories({"fusion": 61, "copy-done": 60}),
            "`fusion` takes 50.4% of the operations' time on the TPU: 61.0 ms.",
        ),
    ],
)
def test_what_most_of_the_operations_time_is(given: OpCategories, text: str) -> None:
    assert category_sentence(given) == text


def test_categories_of_several_hosts() -> None:
    parts = [
        categories({}, kind="CPU"),
        categories({"a": 1, "b": 2}, 1, 2),
        categories({"b": 4, "c": 8}, 3, 5),
    ]
    assert sum_categories(parts) == categories({"a": 1, "b": 6, "c": 8}, 4, 8)
    assert not categories({"copy-done": 0}).waits_most
    assert not categories({"fusion": 0}).waits_most
    assert categories({"copy-done": 1}).waits_most


def test_the_verdict_on_a_run_without_steps() -> None:
    largest = Finding("unknown", "", "The largest operation.", ("no steps",))
    work, waits = categories({"fusion": 95}), categories({"copy-done": 95})
    by_category = verdict_by_category(largest, work, 100 * MS, None)
    assert (by_category.level, by_category.text) == ("unknown", category_sentence(work))
    assert (by_category.why, by_category.details) == (("The largest operation.",), ("no steps",))
    assert verdict_by_category(largest, waits, 100 * MS, None).level == "warn"
    # Compiled operations are less than 95% of the devices' time, or of the host.
    for given, busy in ((work, 101), (categories({"fusion": 95}, kind="CPU"), 95)):
        assert verdict_by_category(largest, given, busy * MS, None) == largest
    assert verdict_by_category(largest, work, 0, None) is largest
    half, less = (DeviceIdle(fraction, 200 * MS, 1, "TPU") for fraction in (0.5, 0.49))
    idle = verdict_by_category(largest, work, 100 * MS, half)
    assert (idle.level, idle.category, idle.text) == ("warn", "other", half.sentence)
    assert idle.why == (category_sentence(work),)
    assert verdict_by_category(largest, work, 100 * MS, less) == by_category


def test_idle_devices_in_words() -> None:
    one = DeviceIdle(0.882, 32.6 * MS, 1, "GPU").sentence
    assert one == "The GPU is idle for 88.2% of the 32.6 ms between its first and its last operation."
    two = DeviceIdle(0.5, 32.6 * MS, 2, "XPU").sentence
    assert (
        two == "The 2 devices are idle for 50.0% of the 32.6 ms between their first and their last operation."
    )
    four = DeviceIdle(0.882, 32.6 * MS, 4, "TPU").sentence
    assert (
        four == "The 4 cores are idle for 88.2% of the 32.6 ms between their first and their last operation."
    )


def test_exact_sums_of_large_and_negative_times() -> None:
    key = np.array([2, 0, 2, 2, 0])
    value = np.array([2**60 + 1, -5, 2**53 + 1, 3, 2])
    assert sum_by(key, value, 4).tolist() == [-3, 0, 2**60 + 2**53 + 5, 0]


def test_occurrences_are_summed_by_operation() -> None:
    """Of five occurrences of three of four operations, two are eager; the second operation never occurs."""
    occurrences = Occurrences(
        np.array([3, 0, 3, 2, 3]),
        np.array([10, 20, 30, 40, 50]),
        np.array([1, 2, 3, 4, 5]),
        np.array([True, False, True, True, False]),
    )
    found = sum_occurrences([("a", "A"), ("b", "B"), ("c", "C"), ("d", "D")], occurrences, 77)
    assert (found.name, found.type, found.span_ps) == (("a", "c", "d"), ("A", "C", "D"), 77)
    assert found.n_occurrences.tolist() == [1, 1, 3]
    assert (found.time_ps.tolist(), found.self_ps.tolist()) == ([20, 40, 90], [2, 4, 9])
    assert found.is_eager.tolist() == [False, True, True]
    assert np.isnan([found.flops, found.model_flops, found.n_bytes]).all()


def test_devices_without_operations_keep_their_span() -> None:
    idle = replace(no_ops(), span_ps=40)
    assert add_up([idle, no_ops()]) is idle
    assert len(add_up([no_ops(), no_ops()])) == 0
    assert add_up([idle, replace(OPS, span_ps=0), OPS]).span_ps == 40 + 150 * MS


def test_operations_of_three_devices_add_up() -> None:
    """By program, name and mode; the first known type and origin count."""
    other = ops_of(name=("b", "a", "c"), type=("B", "x", "y"), provenance=("p", "", "q"), program=(0, 0, 1))
    third = ops_of(span_ps=7, self_ps=np.array([1, 2, 3]))
    total = add_up([OPS, no_ops(), other, third])
    assert total.name == ("a", "b", "c", "b", "a", "c")
    assert total.is_eager.tolist() == [True, False, False, True, False, False]
    assert total.program == (0, 0, 0, 0, 0, 1)
    assert total.type == ("A", "", "C", "B", "x", "y")
    assert total.provenance == ("", "", "s/c:C", "p", "", "q")
    assert total.n_occurrences.tolist() == [2, 4, 10, 1, 2, 5]
    assert total.time_ps.tolist() == [80 * MS, 120 * MS, 60 * MS, 40 * MS, 60 * MS, 30 * MS]
    assert total.self_ps.tolist() == [10 * MS + 1, 60 * MS + 2, 30 * MS + 3, 10 * MS, 60 * MS, 30 * MS]
    assert total.flops.tolist() == [2, 4, 8, 1, 2, 4]
    assert total.model_flops.tolist() == [2, 4, 6, 1, 2, 3]
    assert np.array_equal(total.n_bytes, [10, 12, np.nan, 5, 6, np.nan], equal_nan=True)
    assert total.span_ps == 300 * MS + 7
    assert add_up([no_ops(), OPS]) is OPS
    assert (OPS.busy_ps, OPS.idle_ps) == (100 * MS, 50 * MS)
    assert ops_of(span_ps=99 * MS).idle_ps == 0
    assert (idle_fraction(OPS), idle_fraction(no_ops())) == (pytest.approx(1 / 3), None)


def test_operations_by_framework_operation() -> None:
    """Two instructions of one operation: it occurred as often as the more frequent one. A kernel of no operation stays
    apart from an operation of its name.
    """
    ops = ops_of(
        name=("x", "y", "d"),
        provenance=("s/d:D", "s/d:D", ""),
        type=("fusion", "dot", "(no operation)"),
        n_occurrences=np.array([3, 2, 9]),
    )
    found = by_framework_op(ops)
    assert found.name == ("s/d", "d")
    assert found.type == ("D", "(no operation)")
    assert found.n_occurrences.tolist() == [3, 9]
    assert found.self_ps.tolist() == [70 * MS, 30 * MS]
    assert found.time_ps.tolist() == [100 * MS, 30 * MS]
    assert found.flops.tolist() == [3, 4]
    assert found.model_flops.tolist() == [3, 3]
    assert found.n_bytes[0] == 11
    assert found.is_eager.tolist() == [True, False]
    assert found.span_ps == 150 * MS
    unknown = by_framework_op(
        ops_of(name=("s/d", "d", "d"), provenance=("", "s/d:D", ""), type=("", "z", "(no operation)"))
    )
    assert (unknown.name, unknown.type) == (("s/d", "d"), ("Unknown", "(no operation)"))


def test_ratios_and_limits() -> None:
    found = ratio(np.array([1.0, 2.0, np.nan, -3.0]), np.array([2.0, 0.0, 1.0, 2.0]))
    assert np.array_equal(found, [0.5, np.nan, np.nan, -1.5], equal_nan=True)
    assert [limit_text("HBM", share, "add") for share in (0.3, 0.29)] == ["HBM", "Below every limit"]
    assert limit_text("Unknown", 0.9, "add") == "Unknown"
    assert limit_text("HBM", 0.9, "a/copy-done.3") == "Waiting"
    assert [in_words(resource) for resource in ("Compute", "HBM")] == ["compute", "HBM"]
    assert LIMITS[:4] == ("Unknown", "Waiting", "Below every limit", "Compute")


def test_the_first_known_roofs_count() -> None:
    none, compute, both = (
        Roofs(0.0, (0.0,) * 5),
        Roofs(1.0, (0.0,) * 5),
        Roofs(1.0, (0.0, 2.0, 0.0, 0.0, 0.0)),
    )
    assert [one.is_known for one in (none, compute, both)] == [False, False, True]
    assert first_roofs([none, compute, both]) is both
    assert first_roofs([none, compute]) is none
    sources = Roofs(1.0, (1.0,), 0.0, ("a https://x.org/y (p. 3)", "https://z")).short_sources
    assert sources == ("a (p. 3)", "")


def test_shares_of_peaks() -> None:
    used = Utilization(30, 120, 5, 20.0, 6.0, 100.0, 20.0)
    assert (used.duty_cycle, used.flops_fraction, used.bandwidth_fraction) == (0.25, 0.2, 0.3)
    assert (used.roofline_fraction, used.bound_by) == (0.3, "memory")
    compute = replace(used, flops=30.0)
    assert (compute.roofline_fraction, compute.bound_by) == (0.3, "compute")
    for unknown in (replace(used, flops=0.0), replace(used, max_flops=0.0), replace(used, hbm_bytes=0.0)):
        assert (unknown.roofline_fraction, unknown.bound_by) == (None, "")
    assert Utilization().duty_cycle is None
    assert sum_utilization([used, used, compute]) == Utilization(90, 360, 15, 70.0, 18.0, 300.0, 60.0)


def test_the_core_of_a_sparse_core() -> None:
    named = {"/device:TPU:0": 3, "/device:TPU:0 x": 2}
    assert _core_of("/device:TPU:0 SparseCore 1", named, 9) == 3
    assert _core_of("/device:TPU:0 x SparseCore 1", named, 9) == 2
    assert _core_of("/device:TPU:1 SparseCore 1", named, 9) == 9
    assert _core_of("/device:TPU:0", named, 9) == 9
