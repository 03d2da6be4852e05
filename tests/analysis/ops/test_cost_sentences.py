"""The verdict on steps in words, at both sides of the limits that pages state; and on operations without
steps.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.ops.metrics import (
    no_ops,
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
from tb_tpuprof.analysis.ops.stats import OpStats
from tb_tpuprof.analysis.steps.classes import N_CLASSES, TimeClass
from tb_tpuprof.analysis.steps.record import Steps
from tests.analysis.ops.examples import MS, OPS, ops_of

NO_OPS = OpStats(no_ops(), no_ops(), no_ops())


def steps_of(*steps: dict[str, int], duration: int = 1000) -> Steps:
    """Steps of a second, with so many milliseconds of classes in each; the rest is computing on the
    device.
    """
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


def test_untraced_time_of_a_step_that_was_called_ahead_is_not_waiting_for_data() -> None:
    steps = steps_of({"UNKNOWN": 30, "HOST_COMPUTE": 970})
    ahead = replace(steps, is_ahead=True)
    called = "each step's work was called before the previous step's work ended"
    assert input_finding(steps, "CPU").level == "warn"
    found = input_finding(ahead, "CPU")
    assert (found.level, found.text) == ("good", "Not input-bound: no step waits for data.")
    assert found.costs == (
        "30.0 ms (3.00%) of each step is Python or other work between operations, not waiting for data: "
        f"{called}.",
    )
    assert input_finding(ahead, "GPU").level == "warn"
    assert finding(ahead, NO_OPS, "CPU").text == (
        f"30.0 ms (3.00%) of each step was not recorded: no operation ran, although {called}."
    )


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
