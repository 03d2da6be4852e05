"""Advice, notices and comparisons of the overview at both sides of each condition, and numbers of unlike
steps.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tb_tpuprof.analysis.device import peaks
from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH, SERVING, TENSORFLOW, UNKNOWN
from tb_tpuprof.analysis.ops.framework_calls import EAGER, GRAPH, LAUNCH, LOADER, SYNC, WORKERS, Call
from tb_tpuprof.analysis.overview.facts import DeviceTimes, HostFacts, RunFacts, host_facts, run_facts
from tb_tpuprof.analysis.overview.framework_advice import framework_advice
from tb_tpuprof.analysis.overview.hosts import HostSteps, are_alike, host_steps, slowest_host
from tb_tpuprof.analysis.overview.live import live_sample
from tb_tpuprof.analysis.overview.summary import Summary, summary
from tb_tpuprof.analysis.steps.combine import CommonSteps
from tb_tpuprof.analysis.steps.diagnostics import Notice, annotate_remedy, step_notices, trace_notices
from tb_tpuprof.analysis.steps.pytorch import LoaderWait
from tb_tpuprof.analysis.steps.pytorch_loader import loader_sentence
from tb_tpuprof.analysis.steps.record import Steps, no_steps
from tests.analysis.input.records import steps_of
from tests.builders import PS, DrawnEvent, DrawnPlane, build, drawing

MS = 10**9


def advised(
    category: str, framework: str, *calls: Call, n_steps: int = 3, kind: str = "CPU", **software: bool
) -> tuple[str, ...]:
    names = ("uses_tf_data", "is_amd", "has_python")
    facts = SimpleNamespace(
        software=SimpleNamespace(framework=framework, **{name: software.get(name, False) for name in names}),
        steps=replace(steps_of(*[100 * MS] * n_steps), is_ahead=software.get("is_ahead", False)),
        common=SimpleNamespace(is_disjoint=software.get("is_disjoint", False)),
        kind=kind,
    )
    return framework_advice(category, cast(RunFacts, facts), calls)


def test_without_steps_the_advice_is_to_mark_them() -> None:
    words = {
        PYTORCH: "`prof.step()`",
        JAX: "StepTraceAnnotation",
        TENSORFLOW: "tf.profiler.experimental.Trace",
        SERVING: "tf.profiler.experimental.Trace",
        UNKNOWN: "Annotate steps, so",
    }
    for framework, word in words.items():
        (text,) = advised("input", framework, n_steps=0)
        assert word in text
    assert advised("input", JAX, n_steps=0, is_disjoint=True) == (
        "Select one host at a time: the captures do not overlap.",
    )
    assert advised("input", UNKNOWN, is_disjoint=True) == (
        "Load ahead: use more workers, and load the next batch while the current step runs.",
    )


@pytest.mark.parametrize(
    ("category", "framework", "start"),
    [
        ("device_collectives", PYTORCH, "Overlap communication with the backward pass"),
        (
            "device_collectives",
            JAX,
            "Overlap communication with compute, use a larger batch per device, or shard differently (`",
        ),
        ("device_collectives", TENSORFLOW, "Use a larger batch per replica"),
        (
            "device_collectives",
            UNKNOWN,
            "Overlap communication with compute, use a larger batch per device, or shard differently.",
        ),
        ("compilation", PYTORCH, "Keep shapes constant (`torch.compile"),
        ("compilation", SERVING, "Pass tensors instead"),
        ("compilation", UNKNOWN, "Keep shapes and arguments constant"),
        ("output", JAX, "Fetch results less often: keep metrics on the device, and convert"),
        ("output", UNKNOWN, "Fetch results less often: log"),
        ("host_python", JAX, "Do less in Python per step"),
        ("host_wait", PYTORCH, "Check in the trace viewer what the step waits for"),
        ("device_compute", JAX, "The steps are compute-bound"),
        ("input", JAX, "Load ahead of use: Grain"),
        ("input", TENSORFLOW, "Feed the job with tf.data"),
        ("input", UNKNOWN, "Load ahead: use more workers"),
        ("kernel_launch", UNKNOWN, "Launch fewer, larger kernels: compile the step, or run"),
        ("other", UNKNOWN, "Look for host work between operations."),
        ("other", PYTORCH, "Capture with `with_stack=True`"),
        ("other", JAX, "JAX dispatches asynchronously"),
        ("other", TENSORFLOW, "Keep Python out of the loop"),
    ],
)
def test_the_first_advice_on_a_category(category: str, framework: str, start: str) -> None:
    assert advised(category, framework)[0].startswith(start)


def test_advice_on_waits_cites_the_longest_two_of_more_than_a_hundredth() -> None:
    calls = [
        Call(SYNC, "$threading.py:3 wait", 2000, 40 * MS),
        Call(LAUNCH, "launch", 1, 90 * MS),
        Call(SYNC, "item", 1, 5 * MS),
        Call(SYNC, "third", 7, 4 * MS),
        Call(SYNC, "short", 9, 3 * MS),
    ]
    assert advised("synchronization", PYTORCH, *calls) == (
        (
            "The host waits for the device in `wait` (2,000 calls, 40.0 ms) and `item` (1 call, 5.00 ms):"
            " move `.item()`, `.cpu()`, printing of losses and `torch.cuda.synchronize()` out of the step, or"
            " do them only every n-th step."
        ),
    )
    assert advised("synchronization", UNKNOWN, calls[2])[0].endswith(
        "5.00 ms): fetch results only every n-th step."
    )
    assert advised("synchronization", JAX, calls[4]) == ()
    assert len(advised("synchronization", JAX, replace(calls[4], time_ps=3 * MS + 1))) == 1
    asynchronous = advised("other", JAX, calls[2])
    assert [text.split(":")[0] for text in asynchronous] == [
        "The host waits for the device in `item` (1 call, 5.00 ms)",
        "Capture with the Python tracer on (`python_tracer_level=1`) to see Python calls between operations.",
    ]


def test_advice_on_idle_time_depends_on_device_and_tracer() -> None:
    assert len(advised("other", JAX, kind="TPU")) == 1
    assert advised("other", JAX, is_ahead=True) == advised("other", JAX)[1:]
    traced = advised("other", JAX, kind="TPU", has_python=True)
    assert traced == (
        "Python calls are traced: check in the trace viewer which run while nothing else does.",
    )
    assert advised("other", UNKNOWN, has_python=True) == traced
    gpu = advised("other", PYTORCH, kind="GPU")
    assert [text.split(":")[0] for text in gpu] == [
        "Launch fewer, larger kernels",
        "Capture with `with_stack=True` to see Python calls between operators.",
    ]
    assert len(advised("other", PYTORCH, kind="CPU")) == 1
    assert len(advised("other", TENSORFLOW, kind="GPU")) == 3


@pytest.mark.parametrize(("n", "is_cited"), [(23, False), (24, True), (25, True)])
def test_eight_launches_per_step_are_many(n: int, is_cited: bool) -> None:
    calls = (Call(LAUNCH, "a", n - 4, 1), Call(LAUNCH, "b", 4, 1), Call(GRAPH, "g", 0, 1))
    cited = f"{n:,} kernels were launched one by one in the steps: "
    for framework, else_text in (
        (PYTORCH, "Launch fewer, larger kernels: "),
        (JAX, "Launch fewer, larger programs: "),
        (TENSORFLOW, "Launch fewer, larger kernels: "),
    ):
        assert advised("kernel_launch", framework, *calls)[0].startswith(cited if is_cited else else_text)
    graphs = advised("kernel_launch", PYTORCH, *calls[:2], Call(GRAPH, "g", 2, 1), is_amd=True)
    general = "Launch fewer, larger kernels: compile the step, or run several steps per call."
    assert graphs == (
        (f"{cited}HIP graphs are in use; capture more of the step in them.",) if is_cited else (general,)
    )
    assert "replay them as CUDA graphs" in advised("kernel_launch", PYTORCH, *calls)[0]
    assert "replay them as HIP graphs" in advised("kernel_launch", PYTORCH, *calls, is_amd=True)[0]


@pytest.mark.parametrize(("n", "is_eager"), [(2, False), (3, False), (4, True), (1200, True)])
def test_more_than_one_eager_operation_per_step(n: int, is_eager: bool) -> None:
    (text,) = advised("kernel_launch", TENSORFLOW, Call(EAGER, "e", n, 1))
    assert text.startswith(
        f"{n:,} operations ran eagerly: put" if is_eager else "Launch fewer, larger kernels: compile"
    )


def test_advice_on_pytorch_s_loader_cites_batches() -> None:
    calls = Call(LOADER, "x", 1, 2 * MS), Call(WORKERS, "w", 5, MS)
    first, pinned = advised("input", PYTORCH, *calls, kind="GPU")
    assert advised("input", PYTORCH, *calls) == (first,)  # nothing is copied from pinned memory to a CPU
    assert first.startswith("The `DataLoader` loads in the training process (1 batch took 2.00 ms): set")
    assert pinned.startswith("`pin_memory=True` with")
    assert "(1,500 batches waited 1.00 ms)" in advised("input", PYTORCH, Call(WORKERS, "w", 1500, MS))[0]
    assert advised("input", PYTORCH, Call(SYNC, "s", 5, MS))[0].startswith("Load in worker processes")
    for framework in (JAX, TENSORFLOW, UNKNOWN):
        assert advised("input", framework, uses_tf_data=True)[0].startswith("Let tf.data work ahead")


def part(host: str, steps: Steps, duty_cycle: float | None = None) -> Summary:
    return cast(Summary, SimpleNamespace(host=host, steps=steps, use=SimpleNamespace(duty_cycle=duty_cycle)))


def test_hosts_are_compared_in_their_common_steps() -> None:
    parts = [
        part("a", steps_of(10, 20, 60, HOST_WAIT_INPUT=(1, 2, 12)), 0.5),
        part("b", steps_of(30, 90, HOST_TO_DEVICE=(3, 9))),
        part("c", no_steps()),
        part("d", steps_of(500)),
    ]
    common = CommonSteps(no_steps(), rows=(slice(1, 3), slice(0, 2), slice(0, 0), slice(0, 0)))
    assert host_steps(parts, common) == (
        HostSteps("b", 60, 12 / 120, 108 / 120, None),
        HostSteps("a", 40, 14 / 80, 66 / 80, 0.5),
    )
    apart = host_steps(parts, replace(common, is_disjoint=True))
    assert [(host.host, host.step_ps) for host in apart] == [("d", 500), ("b", 60), ("a", 30)]
    empty = host_steps([part("z", steps_of(0))], CommonSteps(no_steps(), rows=(slice(0, 1),)))
    assert empty == (HostSteps("z", 0, 0, 0, None),)


def hosts_of(*times: float) -> list[HostSteps]:
    return [HostSteps(f"h{i}", time, 0, 0, None) for i, time in enumerate(times)]


def test_hosts_within_a_hundredth_are_equally_fast() -> None:
    assert [are_alike(hosts_of(slow, 1000)) for slow in (1009, 1010.0001, 2000)] == [True, False, False]
    assert are_alike(hosts_of(5))
    assert are_alike([])
    assert are_alike(hosts_of(5, 0))
    assert slowest_host(hosts_of(5)) == ""
    assert (
        slowest_host(hosts_of(1005, 1004, 1000))
        == "All 3 hosts are equally fast: their average step times differ by less than 1%."
    )
    assert (
        slowest_host(hosts_of(1.12 * MS, MS, MS))
        == "`h0` is the slowest of 3 hosts: its steps take 1.12 ms on average, 12.0% longer than on the"
        " fastest, `h2`."
    )
    assert slowest_host(hosts_of(1.999 * MS, MS)).endswith("99.9% longer than on the fastest, `h1`.")
    assert slowest_host(hosts_of(2 * MS, MS)).endswith(
        "on average, 2.00 times as long as on the fastest, `h1`."
    )


def test_a_live_sample_of_unlike_steps() -> None:
    trace = drawing(
        """
        main   [train               ][train     ][train                         ]
        main   [IteratorGetNext][a:A][b:B       ][IteratorGetNext   ][c:C       ]
        """,
        {"train": [{"_r": 1, "step_num": i} for i in range(3)]},
    )
    found = live_sample(trace)
    assert (found.device_type, found.n_cores, found.device_idle_fraction) == ("CPU", None, None)
    assert (found.n_steps, found.step_time_min_ps, found.step_time_max_ps) == (3, 12 * PS, 32 * PS)
    assert found.step_time_avg_ps == pytest.approx(66 / 3 * PS)
    assert (found.input_fraction_min, found.input_fraction_max) == pytest.approx((0, 17 / 22))
    assert found.input_fraction_avg == pytest.approx(37 / 66)
    nothing = live_sample(drawing("main  [a:A ]"))
    assert (nothing.n_steps, nothing.step_time_avg_ps, nothing.input_fraction_max) == (0, None, None)


def test_versions_are_texts_or_numbers() -> None:
    planes = [
        DrawnPlane(
            "/host:CPU", {"main": [DrawnEvent("x", 0, 1)]}, {"jax_version": "0.4.1", "cuda_version": 12040}
        ),
        DrawnPlane(
            "/host:metadata",
            {"m": [DrawnEvent("y", 0, 1)]},
            {"jax_version": "0.4.2", "libtpu_version": "0.0.17", "cuda_version": 11000},
        ),
    ]
    assert summary(build(planes)).versions == (("jax", "0.4.1"), ("libtpu", "0.0.17"), ("cuda", "12040"))


def test_notices_on_inferred_waiting_and_on_peaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host waits in one step of two."""

    def op(name: str, start: int, length: int, **stats: Any) -> DrawnEvent:
        return DrawnEvent(name, start * PS, length * PS, stats)

    device = DrawnPlane(
        "/device:TPU:0",
        {
            "Steps": [op(str(i), 90 * i, 90, group_id=i, step_name=str(i)) for i in range(2)],
            "XLA Ops": [op("fusion.1", 90 * i, 60, group_id=i) for i in range(2)],
        },
    )
    waits = DrawnPlane("/host:CPU", {"main": [op("IteratorGetNext", 62, 20, group_id=0)]})
    waiting = summary(build([waits, device], host="h")).notices
    assert [notice.message.split(",")[0] for notice in waiting] == ["h: no infeed was traced"]
    assert summary(build([device])).notices == ()
    monkeypatch.setattr("tb_tpuprof.analysis.overview.summary.problem", lambda: "unreadable")
    assert [(one.severity, one.message) for one in summary(build([device])).notices] == [
        ("warning", "unreadable")
    ]
    assert peaks.problem() == ""


def test_shares_of_gpus_that_work_in_steps() -> None:
    """Steps of 100 and 300 with 60 and 130 of work on the GPU; copies between hosts are none of it."""
    steps = steps_of(
        100,
        300,
        DEVICE_COMPUTE_32=(30, 60),
        DEVICE_COMPUTE_16=(10, 20),
        HOST_TO_DEVICE=(5, 10),
        DEVICE_TO_HOST=(5, 10),
        DEVICE_COLLECTIVES=(5, 10),
        DEVICE_TO_DEVICE=(5, 20),
        HOST_TO_HOST=(20, 50),
        HOST_COMPUTE=(10, 10),
    )
    host = host_facts(drawing("/device:GPU:0:\n  s [k]"))
    hosts = [
        replace(host, devices=DeviceTimes(spans, busy, union, union_busy), duration_ps=duration)
        for spans, busy, union, union_busy, duration in (
            ((100, 50), (40, 30), 120, 60, 7),
            ((30,), (10,), 30, 10, 9),
            ((), (), 0, 0, 8),
        )
    ]
    facts = RunFacts(tuple(hosts), CommonSteps(steps))
    assert facts.union_idle_fraction == pytest.approx(1 - 190 / 400)
    assert facts.idle_fraction == facts.union_idle_fraction
    assert (facts.n_active, facts.capture_ps, facts.device_time_ps, facts.device_busy_ps) == (3, 9, 180, 80)
    assert facts.mean_idle_fraction == pytest.approx(1 - 80 / 180)
    without = RunFacts(tuple(hosts), CommonSteps(no_steps()))
    assert without.union_idle_fraction == pytest.approx(1 - 70 / 150)
    assert (without.idle_fraction, without.step_time_ps) == (without.mean_idle_fraction, None)
    assert facts.step_time_ps == 200
    assert RunFacts(tuple(hosts), CommonSteps(steps, is_disjoint=True)).idle_fraction is None
    assert RunFacts((hosts[2],), CommonSteps(no_steps())).mean_idle_fraction is None
    over = replace(steps, class_ps=steps.class_ps * 9)
    assert RunFacts(tuple(hosts), CommonSteps(over)).union_idle_fraction == 0
    tpu = cast(
        HostFacts, replace(host, hardware=replace(host.hardware, kind="TPU"), devices=hosts[0].devices)
    )
    assert RunFacts((tpu,), CommonSteps(steps)).idle_fraction == pytest.approx(1 - 70 / 150)
    assert RunFacts((tpu,), CommonSteps(steps)).union_idle_fraction == pytest.approx(1 - 60 / 120)


def test_a_core_s_span_includes_its_steps_and_its_busy_time_only_operations() -> None:
    def op(start: int, length: int) -> DrawnEvent:
        return DrawnEvent("op", start * PS, length * PS)

    cores = [
        DrawnPlane(
            "/device:TPU:0",
            {"Steps": [op(10, 50)], "XLA Ops": [op(20, 5), op(30, 10)], "XLA Modules": [op(0, 99)]},
        ),
        DrawnPlane("/device:TPU:1", {"Steps": [op(25, 3)], "XLA Ops": [op(22, 6), op(70, 10)]}),
        DrawnPlane("/device:TPU:2", {"Steps": [op(0, 500)]}),
    ]
    times = host_facts(build(cores)).devices
    assert [span // PS for span in times.span_ps] == [50, 58]
    assert [busy // PS for busy in times.busy_ps] == [15, 16]
    assert (times.union_span_ps // PS, times.union_busy_ps // PS) == (70, 8 + 10 + 10)
    assert host_facts(build(cores[2:])).devices == DeviceTimes()


def test_clocks_are_corrected_before_steps_are_aligned() -> None:
    part = host_facts(drawing("main  [train    ][train    ]\nmain  [a:A ][b:B      ]", {"train": {"_r": 1}}))
    late = replace(part, start_ns=part.start_ns + 5 * 10**9)
    assert run_facts([part, late]).common.is_disjoint
    assert not run_facts([part, late], [0, -5 * 10**9]).common.is_disjoint


def test_notices_on_a_trace() -> None:
    busy = [DrawnPlane("/host:CPU", {"main": [DrawnEvent("x", 0, 1)]})]

    def told(planes: list[DrawnPlane] = busy, **info: Any) -> list[tuple[str, str]]:
        return [(notice.severity, notice.message) for notice in trace_notices(build(planes, **info))]

    assert told() == []
    assert told(errors=("e1", "e2", "e1"), warnings=("w", "w")) == [
        ("error", "host: the profiler reported: e1"),
        ("error", "host: the profiler reported: e2"),
        ("warning", "host: the profiler warned: w"),
    ]
    for n, damage, text in (
        (1, "", "1 damaged part was skipped"),
        (1, "a line is cut off", "a line is cut off"),
        (2, "", "2 damaged parts were skipped"),
        (1200, "a cut", "1,200 damaged parts were skipped (first: a cut)"),
    ):
        assert told(n_damaged=n, damage=damage) == [("warning", f"host: {text}. Numbers may be too low.")]
    assert told([]) == [("warning", "host: the trace contains no events.")]
    assert told([], is_outline=True) == []
    idle = [*busy, DrawnPlane("/device:GPU:0", {"s": []}), DrawnPlane("/device:GPU:1", {"s": []})]
    assert [message.split(":")[1] for _, message in told(idle)] == [
        " the accelerators' planes contain no events"
    ]
    assert told([*idle, DrawnPlane("/device:GPU:2", {"s": [DrawnEvent("k", 0, 1)]})]) == []
    tpu = [*busy, DrawnPlane("/device:TPU:0", {"XLA Ops": []})]
    assert len(told(tpu)) == 1


def test_remedies_in_the_words_of_each_framework() -> None:
    assert (
        annotate_remedy(JAX) == "Annotate steps: with jax.profiler.StepTraceAnnotation('train', step_num=i)."
    )
    assert annotate_remedy(SERVING) == annotate_remedy(TENSORFLOW) != annotate_remedy(PYTORCH)
    assert annotate_remedy("Reactant") == "Annotate steps."
    for framework in ("", UNKNOWN):
        text = annotate_remedy(framework)
        assert text.startswith("Annotate steps. JAX: with jax")
        assert "TensorFlow: with tf" in text
        assert "PyTorch: call prof.step()" in text


def said(steps: Steps, n_hosts: int = 5, has_loop_ops: bool = False, **common: Any) -> list[Notice]:
    return list(step_notices(CommonSteps(steps, **common), n_hosts, has_loop_ops, JAX))


def test_notices_on_missing_steps() -> None:
    annotate = annotate_remedy(JAX)
    longer = f"{annotate} If steps are annotated, capture for longer than one step takes."
    (none,) = said(no_steps())
    assert (none.message, none.remedy) == ("No steps were found, so there is no step time.", longer)
    (loops,) = said(no_steps(3, 4), has_loop_ops=True)
    assert loops.message.startswith("TensorFlow v1 loops run on the host")
    (apart,) = said(steps_of(5), is_disjoint=True)
    assert apart.message.startswith("The hosts have no steps in common")
    for n, words in ((1, "1 step"), (2, "2 steps"), (1500, "1,500 steps")):
        (empty,) = said(no_steps(n, 7))
        assert empty.message == f"Found {words} without computation, so there is no step time."
        found = said(replace(steps_of(5), n_incomplete=n))
        assert [one.message for one in found] == [f"Excluded {words} without computation."]
    for n, words in ((1, "1 program run"), (2, "2 program runs"), (1500, "1,500 program runs")):
        (runs,) = said(no_steps(0, n))
        assert runs.message.endswith(f"so there is no step time. The trace contains {words}.")
        assert runs.remedy.endswith(f"In training, a{annotate[1:]}")


def test_notices_on_steps() -> None:
    assert said(steps_of(5)) == []
    assert said(steps_of(5), has_loop_ops=True) == []
    everything = replace(steps_of(5, 6, 7), source="function", n_trimmed=2, n_incomplete=4)
    assert [(one.severity, one.message.split(":")[0]) for one in said(everything, n_without=2)] == [
        ("info", "Steps are not annotated"),
        ("warning", "2 of 5 hosts have no steps; step times are from the others."),
        (
            "info",
            "The first and the last of 5 steps are excluded, since the capture may have truncated them.",
        ),
        ("info", "Excluded 4 steps without computation."),
    ]


@pytest.mark.parametrize(
    ("hidden", "text"),
    [(0, "."), (9, "."), (10, ", 1.00% of it while kernels run."), (500, ", 50.0% of it while kernels run.")],
)
def test_the_longest_fetching_host_is_named(hidden: int, text: str) -> None:
    wait = LoaderWait("next", 4, 1000 * MS, hidden * MS, 5000 * MS)
    shorter = LoaderWait("other", 1, 1500 * MS, 0, 9000 * MS)
    assert (
        loader_sentence([shorter, None, wait], ["a", "b", "c"])
        == f"`c`: `next` takes 250 ms (20.0%) of each of the 4 marked steps{text}"
    )
    assert (
        loader_sentence([wait], ["c"]) == f"`next` takes 250 ms (20.0%) of each of the 4 marked steps{text}"
    )
    assert loader_sentence([None, None], ["a", "b"]) == ""
    single = LoaderWait("_SingleProcessDataLoaderIter.next", 1, MS, 0, 0)
    assert loader_sentence([single], ["c"]).endswith(
        "of the marked step. It loads batches in the training process (num_workers=0)."
    )
    assert (single.fraction, wait.is_in_process) == (0, False)
