"""Whole sentences, evidence and fixes of rules about accelerators, in each of their branches.

Steps take 100, 200 and 300 µs, so 20 µs per step is a tenth.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.device_wording import most, operation, peak_evidence
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Evidence, Finding
from tb_tpuprof.analysis.diagnosis.records import DeviceOp, Exchange, Group, HostEvidence, KernelUse, Part
from tb_tpuprof.analysis.diagnosis.rules import device_waits, dispatch, launching, synchronization
from tb_tpuprof.analysis.diagnosis.step_calls import LAUNCH
from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH
from tb_tpuprof.analysis.steps.classes import TimeClass
from tests.analysis.diagnosis.drawn import NOBODY, calls, columns, evidence, function, part
from tests.analysis.diagnosis.rule_findings import HEALTHY, US, only, sync

UPDATE, REPORT = function("update"), function("report", "shop.py", 7)
OPTION = "python_tracer_level=1"


def prepared(*times_us: float, **given: object) -> Part:
    return part(Cause.DISPATCH, *times_us, klass=TimeClass.HOST_PREPARE, **given)  # type: ignore[arg-type]


def on_gpu(*parts: Part, n: int = 10, n_kernels: float = 0.0, **given: object) -> HostEvidence:
    """Evidence of a host that launches `n` kernels in each step."""
    device = replace(HEALTHY, n_kernels=n_kernels)
    fields = {
        "device": device,
        "calls": calls(LAUNCH, cudaLaunchKernel=[n, n, n]),
        "has_python": False,
        **given,
    }
    return evidence(*parts, kind="GPU", **fields)  # type: ignore[arg-type]


def launched(*parts: Part, **given: object) -> Finding:
    return only("launching", on_gpu(*parts, **given))  # type: ignore[arg-type]


IDLE = "The GPU is idle for 20.0 µs (10.0%) of each step while the host"


def test_an_idle_gpu_has_the_sentence_of_what_the_host_does() -> None:
    mine, call = prepared(20, 20, 20, caller=UPDATE), prepared(20, 20, 20, call="aten::mul")
    in_update = " in `update` (mine.py:40)."
    for one, sentence in (
        (launched(mine), f"{IDLE} launches 10 kernels one by one{in_update}"),
        (launched(call), f"{IDLE} launches 10 kernels one by one."),
        (launched(mine, n_kernels=20), f"{IDLE} launches 10 kernels one by one{in_update}"),
        (launched(mine, n_kernels=21), f"{IDLE} issues 10 launches{in_update}"),
        (launched(mine, n=8), f"{IDLE} launches 8 kernels one by one{in_update}"),
        (launched(mine, n=7), f"{IDLE} prepares its work{in_update}"),
        (launched(call, n=7), f"{IDLE} is in `aten::mul`."),
    ):
        assert one.sentence == sentence


@pytest.mark.parametrize(("step_us", "is_many"), [(1600, False), (1599, True)])
def test_launches_of_200_us_each_are_something_else(step_us: int, is_many: bool) -> None:
    """8 launches per step."""
    one = launched(prepared(step_us, step_us, step_us), n=8, steps_us=(9000, 9000, 9000))
    assert ("launches 8 kernels" in one.sentence) == is_many
    assert one.gain_ps == (pytest.approx(0.6 * step_us * US) if is_many else 0.0, step_us * US)


def test_no_launch_is_counted_where_neither_calls_nor_kernels_are_known() -> None:
    given = evidence(prepared(20, 20, 20), kind="TPU")
    one = only("launching", given)
    assert (
        one.sentence == "The TPU is idle for 20.0 µs (10.0%) of each step while the host prepares its work."
    )
    assert one.evidence == (Evidence("The longest call"),)


def test_the_fix_for_an_idle_gpu_is_of_its_reason() -> None:
    waits = (sync("aten::item", (1, 1, 1), (90, 90, 90)),)
    updates = prepared(20, 20, 20, call="command_buffer::update")
    other = prepared(20, 20, 20, call="cudaMalloc")
    many, wait = dispatch.FIXES[JAX], synchronization.FIXES[JAX]
    for one, fix, snippet in (
        (launched(other), many.text, many.snippet),
        (launched(other, syncs=waits), wait.text, wait.snippet),
        (launched(other, n=1, syncs=waits), wait.text, wait.snippet),
        (launched(updates), many.text, many.snippet),
        (launched(updates, n=1), launching._UPDATES, ""),
        (launched(other, n=1), launching._LOOK, ""),
    ):
        assert (one.fix, one.snippet) == (fix, snippet)


def test_an_idle_gpu_shows_the_call_of_many_launches() -> None:
    """Of few launches, the sentence names it."""
    longest = Evidence("The longest call", "worker-0", 3, 9)
    named = prepared(20, 20, 20, call="aten::mul", span=(3, 9))
    assert launched(named).evidence == (longest, Evidence("Most of it: `aten::mul`."))
    assert launched(named, n=1).evidence == (longest,)
    assert launched(prepared(20, 20, 20, span=(3, 9))).evidence == (longest,)


def test_the_option_for_python_frames_is_for_idle_time_that_no_function_is_known_for() -> None:
    for culprit, option in ((UPDATE, ""), (Culprit("call", "aten::mul"), OPTION)):
        assert launched(prepared(20, 20, 20, culprit=culprit)).capture_option == option


@pytest.mark.parametrize(("waits", "is_wait"), [([1, 1, 1, 1, 0], True), ([1, 1, 1, 0, 0], False)])
def test_a_wait_counts_from_four_of_five_steps_on(waits: list[int], is_wait: bool) -> None:
    per_step, computed = np.array(waits), columns(*[90] * 5)
    one_sync = replace(sync("aten::item", (1, 1, 1)), per_step=per_step, computed_ps=computed)
    one = launched(prepared(*[20] * 5), syncs=(one_sync,), steps_us=[200] * 5, n=1)
    assert ("waits for the GPU" in one.reason) == is_wait


def test_a_function_is_the_culprit_of_more_than_half_of_the_idle_time() -> None:
    """The times of a function's parts are summed exactly: to a picosecond."""
    halves = [prepared(5, 5, 5, caller=UPDATE), prepared(5, 5, 5, culprit=UPDATE)]
    call, small = Culprit("call", "aten::mul"), prepared(2, 2, 2, culprit=REPORT)
    assert launched(*halves, prepared(10, 10, 10, culprit=call)).culprit == call
    half = prepared(10, 10, 10)
    assert launched(*halves, half).culprit == NOBODY
    longer = replace(half, time_ps=half.time_ps - 1)
    assert launched(*halves, longer).culprit == UPDATE
    assert launched(small, *halves).culprit == UPDATE
    assert launched(small, prepared(3, 3, 3)).culprit == NOBODY


def doing(*parts: Part) -> str:
    """What the host does, by a finding without many launches."""
    return launched(*parts, n=1).sentence.partition("while the host ")[2]


def test_the_calls_of_an_idle_gpu_are_named_by_the_time_they_take() -> None:
    own = prepared(20, 20, 20, culprit=UPDATE)
    by_culprit = prepared(20, 20, 20, culprit=Culprit("operation", "fusion.1"))
    assert doing(own) == "prepares its work in `update` (mine.py:40)."
    assert doing(by_culprit) == "is in `fusion.1`."
    assert (
        doing(prepared(20, 20, 20, culprit=UPDATE, call="update"))
        == "prepares its work in `update` (mine.py:40)."
    )
    a, b = prepared(5, 5, 5, call="a"), prepared(10, 10, 10, call="b")
    assert doing(a, a, b) == "is in `a` and `b`."  # exactly half each
    assert doing(a, a, replace(b, time_ps=b.time_ps + 1)) == "is in `b`."
    c = prepared(4, 4, 4, call="c")
    assert doing(c, a, a, b) == "is in `a`, `b` and other calls."
    assert doing(c, b, a) == "is in `b`."


def waited(*times_us: float, **given: object) -> Part:
    return part(Cause.SYNCHRONIZATION, *times_us, klass=TimeClass.HOST_WAIT, **given)  # type: ignore[arg-type]


def test_a_wait_of_the_host_names_call_and_function() -> None:
    amount = "The GPU is idle for 20.0 µs (10.0%) of each step because the host waits in"
    for given, where, culprit in (
        ({"call": "aten::item", "culprit": UPDATE}, "`aten::item` in `update` (mine.py:40)", UPDATE),
        ({"call": "aten::item"}, "`aten::item`", Culprit("call", "aten::item")),
        (
            {"call": "aten::item", "culprit": Culprit("annotation", "read")},
            "`aten::item`",
            Culprit("call", "aten::item"),
        ),
        ({"culprit": Culprit("call", "cudaFree")}, "`cudaFree`", Culprit("call", "cudaFree")),
    ):
        one = only("device_waits", on_gpu(waited(20, 20, 20, **given)))
        assert one.sentence == f"{amount} {where} and launches nothing until that returns."
        assert one.culprit == culprit
        assert one.capture_option == ("" if culprit == UPDATE else OPTION)


def test_any_copy_makes_a_wait_for_a_stream_one_for_pinned_memory() -> None:
    wait = waited(20, 20, 20, call="cudaStreamSynchronize")
    copies = Part(Cause.TRANSFERS, TimeClass.HOST_TO_DEVICE, NOBODY, NOBODY, "", columns(0, 0, 3 / US))
    given = on_gpu(wait, copies, framework=PYTORCH)
    assert only("device_waits", given).fix == device_waits._PINNED.text
    assert only("device_waits", replace(given, parts=(wait,))).fix == synchronization.FIXES[PYTORCH].text


@pytest.mark.parametrize(
    ("n_blocks", "op", "words"),
    [
        (2, "aten::few", "`few` of `aten::few` takes 40.0 µs (20.0%) of each step with only 2 blocks:"),
        (1, "aten::few", "`few` of `aten::few` takes 40.0 µs (20.0%) of each step with only 1 block:"),
        (3, "few", "`few` takes 40.0 µs (20.0%) of each step with only 3 blocks:"),
        (3, "", "`few` takes 40.0 µs (20.0%) of each step with only 3 blocks:"),
    ],
)
def test_a_kernel_of_few_blocks_names_its_operation_if_that_is_another(
    n_blocks: int, op: str, words: str
) -> None:
    kernel = KernelUse("few", op, 40 * US, 20 * US, 0.5, n_blocks)
    device = replace(HEALTHY, n_multiprocessors=132, kernels=(kernel,))
    one = only("gpu_occupancy", evidence(kind="GPU", device=device))
    assert (
        one.sentence
        == f"The kernel {words} at least {132 - n_blocks} of the GPU's 132 multiprocessors are idle."
    )
    assert one.culprit == Culprit("operation", op or "few")


def op(name: str, time_us: float, **given: object) -> DeviceOp:
    return replace(DeviceOp(name, "convolution fusion", time_us * US, US, 0.6, 0.2, 0.6), **given)  # type: ignore[arg-type]


def test_memory_bound_compute_has_the_sentence_of_what_is_known() -> None:
    bound = op("table.2", 40, hbm_fraction=0.9)
    for flops, ops, end in (
        (0.2, (), ", and its matrix units reach only 20.0% of their peak."),
        (float("nan"), (), "."),
        (
            0.2,
            (op("near.1", 60, hbm_fraction=0.7), bound),
            (
                ", and its matrix units reach only 20.0% of their peak; its longest memory-bound operation is"
                " `table.2` (convolution fusion)."
            ),
        ),
    ):
        device = replace(HEALTHY, hbm_fraction=0.75, flops_fraction=flops, ops=ops)
        one = only("tpu_memory_bound", evidence(kind="TPU", device=device))
        assert (
            one.sentence
            == "The TPU is memory-bound while it computes, 180 µs (90.0%) of each step: it uses 75.0% of its "
            f"HBM bandwidth{end}"
        )


def test_arithmetic_near_its_peak_bounds_the_gain_of_fewer_bytes() -> None:
    """Only 49% of the arithmetic's peak may be used, so half of the bytes is the smaller bound."""
    device = replace(HEALTHY, hbm_fraction=0.75, flops_fraction=0.49)
    assert only("tpu_memory_bound", evidence(kind="TPU", device=device)).gain_ps == (0.0, 90 * US)


@pytest.mark.parametrize(
    ("group", "text"),
    [
        (Group(), ""),
        (Group(0.0, 2, "copy.1", 0.0), ""),
        (Group(100.0, 2, "", 50.0), ""),
        (Group(100.0, 2, "copy.1", 9.9), ""),
        (Group(100.0, 2, "copy.1", 10.0), ", 10.0% of that in `copy.1`"),
        (Group(100.0, 1, "copy.1", 100.0), " (`copy.1`)"),
    ],
)
def test_the_operation_that_takes_most_of_a_group(group: Group, text: str) -> None:
    assert most(group) == text


def test_an_operation_has_its_category_unless_that_says_nothing() -> None:
    assert operation(op("fusion.12", 1)) == "`fusion.12` (convolution fusion)"
    assert operation(op("fusion.12", 1, category="")) == "`fusion.12`"
    assert operation(op("kernel.1", 1, category="custom-call")) == "`kernel.1`"


def test_the_sources_of_the_peaks_are_evidence_if_one_is_known() -> None:
    for sources, text in (
        (("data sheet", "trace"), "Peaks of H100: compute: data sheet; memory: trace."),
        (("", "trace"), "Peaks of H100: memory: trace."),
        (("data sheet", ""), "Peaks of H100: compute: data sheet."),
    ):
        assert peak_evidence(replace(HEALTHY, device="H100", sources=sources)) == (Evidence(text),)
    assert peak_evidence(replace(HEALTHY, device="", sources=("trace", ""))) == (
        Evidence("Peaks of the device: compute: trace."),
    )
    assert peak_evidence(HEALTHY) == ()


def test_collectives_have_the_sentence_of_the_best_source() -> None:
    amount = "Each step spends 20.0 µs (10.0%) in collectives while nothing computes"
    exposed = part(Cause.COMMUNICATION, 20, 20, 20)
    named = replace(exposed, culprit=Culprit("call", "ncclAllReduce"))
    group = replace(HEALTHY, collectives=Group(40 * US, 2, "all-reduce.4", 30 * US))
    exchange = replace(group, exchanges=(Exchange("all-gather", "", 4, 2.0, 0.7),))
    for one_part, device, where, culprit in (
        (exposed, None, ".", Culprit()),
        (exposed, HEALTHY, ".", Culprit()),
        (named, None, " (mostly `ncclAllReduce`).", Culprit("operation", "ncclAllReduce")),
        (named, group, " (mostly `ncclAllReduce`).", Culprit("operation", "ncclAllReduce")),
        (exposed, group, ", 75.0% of that in `all-reduce.4`.", Culprit("operation", "all-reduce.4")),
        (
            named,
            exchange,
            ", 70.0% of it in `all-gather` among 4 ranks.",
            Culprit("operation", "all-gather"),
        ),
    ):
        one = only("communication", evidence(one_part, kind="GPU", device=device))
        assert (one.sentence, one.culprit) == (f"{amount}{where}", culprit)


@pytest.mark.parametrize(
    ("n_devices", "group", "title"),
    [
        (8, "0 (default_pg)", "`all-reduce` among 8 ranks (default_pg)"),
        (2, "3", "`all-reduce` among 2 ranks (group 3)"),
        (1, "3", "`all-reduce` (group 3)"),
        (0, "", "`all-reduce`"),
        (1024, "", "`all-reduce` among 1,024 ranks"),
    ],
)
def test_the_title_of_an_exchange(n_devices: int, group: str, title: str) -> None:
    assert Exchange("all-reduce", group, n_devices, 1.0, 0.5).title == title
