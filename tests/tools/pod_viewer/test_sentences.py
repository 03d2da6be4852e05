"""The pod viewer's sentences about pods whose times are given: stragglers, waiting, one core, equal and
unlike cores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.pod.host import WHOLE, PodCore
from tb_tpuprof.analysis.pod.join import Pod
from tb_tpuprof.analysis.pod.parts import Part
from tb_tpuprof.analysis.pod.stragglers import Slow, Straggler
from tb_tpuprof.tools.pod_viewer.sentences import apart_text, are_alike, straggler_text, verdict

MS = 10**9
DAY_NS = 86_400 * 10**9
Parts = Mapping[Part, int]
INDEPENDENT = (
    "No collectives or transfers between these {} were traced, so they count as independent: the job is as"
    " slow as its slowest."
)


def pod_of(
    cores: Sequence[Parts], n_hosts: int = 1, steps: Sequence[str] = tuple("123456"), kind: str = "TPU"
) -> Pod:
    """A pod whose cores, spread evenly over the hosts, spend these ms per step; each step is the same."""
    part_ps = np.zeros((len(cores), len(steps), len(Part)), np.int64)
    for i, parts in enumerate(cores):
        for part, ms in parts.items():
            part_ps[i, :, part] = ms * MS
    n_steps, names = len(steps), [PodCore(f"{kind}:{i}", i, i) for i in range(len(cores))]
    return Pod(
        tuple(f"h{i}" for i in range(n_hosts)),
        kind,
        kind,
        tuple(names),
        np.arange(len(cores)) * n_hosts // len(cores),
        np.arange(len(cores)),
        tuple(steps),
        part_ps,
        part_ps.sum(axis=2),
        (),
        (),
        0,
        False,
        0,
        np.zeros((len(cores), n_steps), np.int64),
        len(cores),
        np.zeros(n_steps),
        np.ones(n_steps),
    )


def straggler(
    core: int = 1,
    since: int = 0,
    gain: float = 10.0,
    causes: Mapping[str, float] | None = None,
    host: str = "h0",
) -> Straggler:
    """It takes 30 ms instead of 18 ms; the job would save `gain` of 40 ms."""
    slow = Slow(
        core, since, 12.0 * MS, 2 / 3, 9.0, dict(causes or {"compute": 8.0, "input": 4.0}), 30 * MS, 18 * MS
    )
    return Straggler(host, core, slow, gain * MS, 40 * MS)


UNLIKE = pod_of([{Part.COMPUTE: 20, Part.IDLE: 10}, {Part.COMPUTE: 30}, {Part.COMPUTE: 10, Part.INPUT: 20}])


def test_a_straggler_and_what_it_costs() -> None:
    assert (
        straggler_text(UNLIKE, straggler())
        == "`h0 TPU:1` takes 12.0 ms longer per step than the others (30.0 ms; their median is 18.0 ms),"
        " mostly in compute. If it ran at the median speed, the job would save 10.0 ms of 40.0 ms per step"
        " (25.0%)."
    )
    late = straggler_text(UNLIKE, straggler(core=-1, since=3, causes={"compute": 1.0, "idle": 2.0}))
    assert late.startswith("`h0` takes 12.0 ms longer per step than the others since step 4 (30.0 ms;")
    assert "mostly in idle time, waiting for its host." in late
    assert "mostly in waiting for input." in straggler_text(UNLIKE, straggler(causes={"input": 1.0}))
    writes = pod_of(
        [{Part.COMPUTE: 20, Part.OUTPUT: 10}, {Part.COMPUTE: 30}, {Part.COMPUTE: 10, Part.INPUT: 20}]
    )
    assert "mostly in input and output." in straggler_text(writes, straggler(causes={"input": 1.0}))
    assert "mostly in moving data." in straggler_text(UNLIKE, straggler(causes={"network": 1.0}))


@pytest.mark.parametrize(("gain_ms", "is_nothing"), [(0.19, True), (0.2, False), (0.21, False)])
def test_savings_below_half_a_percent_are_almost_nothing(gain_ms: float, is_nothing: bool) -> None:
    text = straggler_text(UNLIKE, straggler(gain=gain_ms))
    assert (
        text.endswith("At the median speed it would save the job almost nothing: others take as long.")
        is is_nothing
    )


@pytest.mark.parametrize(("gain_ms", "level"), [(1.99, "warn"), (2.0, "bad"), (10.0, "bad")])
def test_a_straggler_is_bad_from_five_percent_on(gain_ms: float, level: str) -> None:
    assert verdict(UNLIKE, [straggler(gain=gain_ms)]).level == level


@pytest.mark.parametrize(
    ("cause", "color"),
    [("compute", "compute"), ("input", "input"), ("network", "collective"), ("idle", "idle")],
)
def test_the_first_straggler_gives_the_verdict(cause: str, color: str) -> None:
    first, second = straggler(causes={cause: 1.0}), straggler(core=0, host="h9")
    shown = verdict(UNLIKE, [first, second])
    assert (shown.text, shown.category) == (straggler_text(UNLIKE, first), color)
    assert shown.details == (
        "Of 30.0 ms per step, 66.7% is device compute (mean of 3 cores).",
        INDEPENDENT.format("cores"),
        straggler_text(UNLIKE, second),
    )
    assert [(one.tool, dict(one.params)) for one in shown.next] == [("trace_viewer", {"hosts": "h0"})]
    (subject,) = shown.subjects
    assert (subject.table, subject.column, subject.name) == ("stragglers", "straggler", "h0 TPU:1")
    assert subject.values == {"excess_ps": 12.0 * MS, "excess_fraction": 2 / 3}


@pytest.mark.parametrize(
    ("n", "n_named", "more"), [(1, 0, 0), (3, 2, 0), (4, 3, 0), (5, 3, 1), (1204, 3, 1200)]
)
def test_three_more_stragglers_are_named(n: int, n_named: int, more: int) -> None:
    details = verdict(UNLIKE, [straggler(core=i % 3) for i in range(n)]).details[2:]
    assert sum("longer per step" in text for text in details) == n_named
    assert [text for text in details if "more are" in text] == (
        [f"{more:,} more are in the table."] if more else []
    )


@pytest.mark.parametrize(("n_hosts", "units"), [(1, "3 cores"), (2, "2 hosts"), (3, "3 hosts")])
def test_unlike_cores_without_a_straggler(n_hosts: int, units: str) -> None:
    shown = verdict(replace(UNLIKE, hosts=("a", "b", "c")[:n_hosts]), [])
    assert (shown.level, shown.category) == ("good", "")
    assert (
        shown.text == f"No straggler: none of {units} is consistently slower than the others by 5% or more."
    )
    assert shown.details[1] == INDEPENDENT.format(units[2:])


@pytest.mark.parametrize(
    ("kind", "n_hosts", "unit"), [("TPU", 1, "cores"), ("GPU", 1, "GPUs"), ("CPU", 3, "hosts")]
)
@pytest.mark.parametrize(("extra_ms", "is_alike"), [(0, True), (1, True), (2, False)])
def test_cores_that_differ_by_one_percent_do_the_same_work(
    kind: str, n_hosts: int, unit: str, extra_ms: int, is_alike: bool
) -> None:
    """1 ms and 2 ms of 100 ms, one of three cores for longer in input instead of compute."""
    same = {Part.COMPUTE: 70, Part.INPUT: 30}
    other = {Part.COMPUTE: 70 - extra_ms, Part.INPUT: 30 + extra_ms}
    pod = pod_of([same, same, other], n_hosts, kind=kind)
    assert are_alike(pod) is is_alike
    shown = verdict(pod, [])
    assert shown.text.startswith(f"All 3 {unit} do the same work: of 100 ms per step, ") is is_alike
    if is_alike:
        share = {0: "70.0%", 1: "69.7%"}[extra_ms]
        assert shown.text.endswith(f"{share} is device compute on each.")
        assert (shown.level, shown.category) == ("good", "compute")


def test_both_of_two_cores() -> None:
    assert (
        verdict(pod_of([{Part.COMPUTE: 3}] * 2), []).text
        == "Both cores do the same work: of 3.00 ms per step, 100% is device compute on each."
    )


@pytest.mark.parametrize(("wait_ms", "is_much"), [(9, False), (10, True), (11, True)])
@pytest.mark.parametrize("n_cores", [1, 2])
def test_waiting_for_copies_is_a_warning_from_ten_percent_on(
    n_cores: int, wait_ms: int, is_much: bool
) -> None:
    shown = verdict(pod_of([{Part.COMPUTE: 100 - wait_ms, Part.COPY_WAIT: wait_ms}] * n_cores), [])
    assert shown.level == ("warn" if is_much else ("good" if n_cores == 2 else "unknown"))


def test_a_single_core() -> None:
    pod = pod_of([{Part.COMPUTE: 12, Part.INPUT: 4}])
    assert (
        verdict(pod, []).text
        == "Of 16.0 ms per step, 75.0% is device compute. Only one core was profiled, so there is nothing to"
        " compare."
    )
    assert verdict(pod, []).details == ()
    alone = verdict(replace(pod, apart=(("h7", 5),)), []).text
    assert alone.endswith("`h0 TPU:0` is shown alone, because no other host was captured at the same time.")
    ranks = replace(pod, kind="GPU", cores=(PodCore("GPU:0", 0, 0, rank=3),))
    assert "Only one rank was profiled" in verdict(ranks, []).text
    whole = replace(pod, step_names=(WHOLE,))
    assert verdict(whole, []).text.startswith("Of the 16.0 ms from the first to the last operation, 75.0% is")
    python = pod_of([{Part.PYTHON: 3, Part.COMPUTE: 1}], kind="CPU")
    assert "75.0% is Python" in verdict(python, []).text


@pytest.mark.parametrize(
    ("wait_ms", "part", "is_much"),
    [
        (9, Part.RECV, False),
        (10, Part.RECV, True),
        (10, Part.COLLECTIVE_WAIT, True),
        (9, Part.COLLECTIVE_WAIT, False),
    ],
)
def test_waiting_for_one_another_is_mentioned_from_ten_percent_on(
    wait_ms: int, part: Part, is_much: bool
) -> None:
    details = verdict(pod_of([{Part.COMPUTE: 100 - wait_ms, part: wait_ms}] * 3), []).details
    assert details == (("They wait for one another for 10.0% of their time.",) if is_much else ())


def test_both_kinds_of_waiting_add_up() -> None:
    pod = pod_of([{Part.COMPUTE: 80, Part.COLLECTIVE_WAIT: 14, Part.RECV: 6}] * 2)
    assert verdict(pod, []).details == ("They wait for one another for 20.0% of their time.",)


@pytest.mark.parametrize("is_known", [True, False])
def test_waiting_within_collectives_may_be_unknown(is_known: bool) -> None:
    seen: Any = SimpleNamespace(is_wait_known=is_known)
    pod = replace(pod_of([{Part.COLLECTIVE: 5, Part.COMPUTE: 3}] * 2), collectives=(seen,))
    details = verdict(pod, []).details
    assert any(text.startswith("Only one participant of each collective") for text in details) is not is_known
    assert verdict(pod, []).text.endswith(
        "is collectives on each." if not is_known else "is collectives: transfer on each."
    )


FEW = ("1", "2", "3", "4")


def test_too_few_steps_name_the_slowest_core() -> None:
    pod = pod_of([{Part.COMPUTE: 20}, {Part.COMPUTE: 21}, {Part.COMPUTE: 20}], steps=FEW)
    shown = verdict(pod, [])
    assert shown.level == "unknown"
    assert (
        shown.text
        == "`h0 TPU:1` takes longest in 4 steps: its own time is 21.0 ms, the others' median 20.0 ms."
        " Detecting a straggler takes at least 5 steps."
    )
    assert "takes longest in the whole capture" in verdict(replace(pod, step_names=(WHOLE,)), []).text
    assert (
        "takes longest in 1 step:"
        in verdict(pod_of([{Part.COMPUTE: 2}, {Part.COMPUTE: 1}], steps="a"), []).text
    )
    assert verdict(pod_of([{Part.COMPUTE: 20}, {Part.COMPUTE: 22}], steps="12345"), []).level == "good"


@pytest.mark.parametrize(
    ("busy_ms", "text"),
    [
        ((90, 60, 70), "`h0 TPU:0` is busy for 90.0 ms, `h0 TPU:1` for 60.0 ms."),
        ((60, 80, 70), "`h0 TPU:1` is busy for 80.0 ms, `h0 TPU:0` for 60.0 ms."),
        ((50, 0, 30), "`h0 TPU:0` is busy for 50.0 ms, `h0 TPU:1` not at all."),
        ((60, 79, 70), ""),
    ],
)
def test_too_few_steps_say_how_uneven_the_work_is(busy_ms: tuple[int, ...], text: str) -> None:
    """From a difference of 20% of the step on. All cores take as long, 100 ms."""
    pod = pod_of([{Part.COMPUTE: busy, Part.IDLE: 100 - busy} for busy in busy_ms], steps=FEW)
    uneven = f"Work is uneven: of 100 ms per step, {text}"
    assert verdict(pod, []).text == (
        uneven if text else "No core takes 5% longer than the others in 4 steps."
    )


@pytest.mark.parametrize(
    ("gap_ns", "text"),
    [
        (2 * DAY_NS, "2 days later"),
        (-3 * DAY_NS, "3 days earlier"),
        (2000 * DAY_NS, "2,000 days later"),
        (90 * 10**9, "90.0 s later"),
        (-5 * 10**9, "5.00 s earlier"),
        (0, "0 s later"),
    ],
)
def test_hosts_of_other_times(gap_ns: int, text: str) -> None:
    shown = apart_text(replace(UNLIKE, apart=(("h7", gap_ns),)), 4)
    assert shown.startswith(f"1 of 4 hosts was captured at another time and left out: h7 ({text}). ")


@pytest.mark.parametrize(("n", "more"), [(2, ""), (5, ""), (6, " and 1 more"), (1205, " and 1,200 more")])
def test_five_hosts_of_other_times_are_named(n: int, more: str) -> None:
    shown = apart_text(replace(UNLIKE, apart=tuple((f"h{i}", 10**9) for i in range(n))), 3000)
    named = ", ".join(f"h{i} (1.00 s later)" for i in range(min(n, 5)))
    assert shown.startswith(
        f"{n:,} of 3,000 hosts were captured at another time and left out: {named}{more}. Captures"
    )


def limits(is_elsewhere: bool, cause: Any) -> Any:
    return SimpleNamespace(
        are_elsewhere=lambda tool: is_elsewhere and tool == "pod_viewer",
        diagnosis=SimpleNamespace(causes=[SimpleNamespace(share=0.625, cause=cause)]),
    )


@pytest.mark.parametrize(
    ("kind", "steps", "is_elsewhere", "said"),
    [
        ("CPU", FEW, False, "62.5% is waiting for data on each."),
        ("CPU", FEW, True, ""),
        ("CPU", (WHOLE,), False, "75.0% is "),
        ("TPU", FEW, True, "75.0% is "),
    ],
)
def test_hosts_that_compute_go_by_the_causes_of_their_steps(
    kind: str, steps: Sequence[str], is_elsewhere: bool, said: str
) -> None:
    """Parts of hosts are kinds of time. What limits them elsewhere is the verdict's to say."""
    hosts = pod_of([{Part.COMPUTE: 12, Part.INPUT: 4}] * 2, 2, steps, kind)
    shown = verdict(hosts, [], limits(is_elsewhere, Cause.INPUT))
    assert said in shown.text
    assert shown.category == ({"62.5%": "input", "75.0%": "compute"}[said[:5]] if said else "")
    if not said:
        assert shown.text == "Both hosts do the same work."
        alone = verdict(pod_of([{Part.COMPUTE: 12}], 1, steps, kind), [], limits(True, Cause.INPUT))
        assert alone.text == "Only one host was profiled, so there is nothing to compare."
        assert (
            verdict(hosts, [straggler()], limits(True, Cause.INPUT)).details[0].startswith("No collectives")
        )
