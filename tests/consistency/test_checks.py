"""The checks can fail: each rule finds what is broken on purpose, and nothing in the pages that it was broken
in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tb_tpuprof.tools.payload import Column, Diagnostic, NextStep, Payload, Scalar, Subject, Table, Verdict
from tests.consistency.checks import violations
from tests.consistency.pages import Pages, with_scalar
from tests.consistency.slow_hosts import slow_hosts_agree
from tests.consistency.words import foreign_words
from tests.payload_columns import text_column

Change = Callable[[Payload], Payload]
INPUT_BOUND = "Highly input-bound: each step waits 12.0 ps (40.0%) for data."
LIMIT = "This job is limited by waiting for data, {:.1f}% of the mean step: see the overview."


@cache
def pages() -> Pages:
    """Three pages of a PyTorch run with three steps on three GPUs, drawn by hand; every rule has something to
    look at.
    """
    steps = Table(
        "Steps",
        (
            text_column("step", "Step", ("1", "2", "3")),
            Column("step_time_ps", "Step time", np.array([10, 20, 60]), "ps"),
            Column("start_ps", "Start", np.array([0, 10, 30]), "ps"),
            Column("input_ps", "Input", np.array([1, 5, 30]), "ps"),
            Column("other_ps", "Other", np.array([9, 15, 30]), "ps"),
        ),
    )
    fact = {
        "step_time_avg_ps": Scalar(30.0, "ps", "Average step time"), "n_steps": Scalar(3, "count", "Steps"),
        "input_fraction": Scalar(0.4, "fraction", "Waiting for input"),
    }  # fmt: skip
    overview = Payload(
        "overview_page",
        "run",
        ("a", "b", "c"),
        {
            "steps": steps,
            "breakdown": _shares(0.4, 0.6),
            "environment": Table(
                "Environment",
                (text_column("name", "Name", ["Framework"]), text_column("value", "Value", ["PyTorch"])),
            ),
            "recommendations": _advice("Set `num_workers`."),
            "findings": _findings("Input", f"E{INPUT_BOUND[22:]}", 0.4),
            "causes": _findings("Input", "", 0.4),
        },
        {
            **fact,
            "device_busy_ps": Scalar(240, "ps", "Device busy"),
            "device_time_ps": Scalar(300, "ps", "Device time"),
            "device_idle_fraction": Scalar(0.2, "fraction", "TPU idle"),
        },
        Verdict("bad", INPUT_BOUND, "input"),
    )
    input_page = Payload(
        "input_pipeline_analyzer", "run", overview.hosts, {"steps": steps}, fact, overview.verdict
    )
    ops = Table("Operations", (
        text_column("op", "Operation", ("mm", "IDLE", "add", "relu")),
        Column("total_self_time_ps", "Self time", np.array([150.0, 200.0, 60.0, 30.0]), "ps"),
        Column("flops_fraction", "FLOPS", np.array([0.9, np.nan, 0.1, 0.0]), "fraction", unknown="idle"),
        Column("hbm_bytes_per_s", "HBM", np.array([9e11, np.nan, 1e11, 0.0]), "bytes_per_s", unknown="idle"),
    ))  # fmt: skip
    named = Subject("ops", "op", "mm", {"total_self_time_ps": 150.0})
    verdict = Verdict(
        "unknown",
        "`mm` takes the most time: 150 ps.",
        "compute",
        ("It would save 20% of the time.",),
        (),
        (named,),
    )
    hlo = Payload(
        "hlo_stats", "run", overview.hosts, {"ops": ops, "by_op": _shares(0.5, 0.3, 0.2)}, {}, verdict
    )
    peaks = {"peak_hbm_bytes_per_s": Scalar(1e12, "bytes_per_s", "Peak")}
    pod = Payload(
        "pod_viewer",
        "run",
        overview.hosts,
        {"stragglers": _gain(10.0)},
        {"step_ps": Scalar(60.0, "ps", "Step time")},
    )
    roofline = Payload("roofline_model", "run", overview.hosts, {}, peaks)
    listed = {"chosen": _call("Filter"), "pipelines": _call("Filter")}
    fix = NextStep("See how to fix it (expected gain if fully fixed: 4.00 ps per step)", "overview_page")
    slow = Verdict("bad", f"{INPUT_BOUND} Its bottleneck is `Filter`.", "input", next=(fix,))
    tf_data = Payload("tf_data_bottleneck_analysis", "run", overview.hosts, listed, {}, slow)
    return {one.tool: one for one in (overview, input_page, hlo, roofline, pod, tf_data)}


def _call(stage: str) -> Table:
    names = (("host", "a"), ("pipeline", "Host:0"), ("bottleneck_long_name", stage))
    return Table("Calls", tuple(text_column(name, name, (text,)) for name, text in names))


def _shares(*values: float) -> Table:
    names = [f"part {i}" for i in range(len(values))]
    return Table(
        "Shares",
        (text_column("name", "Name", names), Column("fraction", "Share", np.array(values), "fraction")),
    )


def _findings(cause: str, sentence: str, share: float) -> Table:
    """A finding of the mean step of 30 ps, which promises a third of its time to all of it."""
    texts = (("cause", cause), ("finding", sentence))
    columns = tuple(text_column(name, name, (text,)) for name, text in texts)
    times = (("time_ps", 30.0 * share), ("gain_low_ps", 10.0 * share), ("gain_high_ps", 30.0 * share))
    numbers = (Column(name, name, np.array([time]), "ps") for name, time in times)
    return Table("Findings", (*columns, Column("share", "Share", np.array([share]), "fraction"), *numbers))


def _advice(text: str, tool: str = "") -> Table:
    columns = text_column("text", "What to do", (text,)), text_column("tool", "Page", (tool,))
    return Table("What to do", columns)


def _stragglers(excess_ps: float, gain_ps: float = 9.0) -> Table:
    columns = (
        text_column("straggler", "Straggler", ("b",)),
        Column("excess_ps", "Excess", np.array([excess_ps]), "ps"),
        Column("gain_ps", "Gain", np.array([gain_ps]), "ps"),
    )
    return Table("Stragglers", columns)


def _gain(gain_ps: float) -> Table:
    return _stragglers(20.0, gain_ps)


def said(text: str) -> Change:
    return lambda one: replace(one, verdict=replace(_verdict(one), text=text, subjects=()))


def subject(**changes: object) -> Change:
    return lambda one: replace(
        one, verdict=replace(_verdict(one), subjects=(replace(_verdict(one).subjects[0], **changes),))
    )  # type: ignore[arg-type]


def detail(text: str) -> Change:
    return lambda one: replace(one, verdict=replace(_verdict(one), details=(text,)))


def links(*texts: str) -> Change:
    """Links to the op profile; those about the job's limit go to the overview."""
    steps = tuple(NextStep(text, "overview_page" if "limits" in text else "op_profile") for text in texts)
    return lambda one: replace(one, verdict=replace(_verdict(one), next=steps))


def _verdict(one: Payload) -> Verdict:
    assert one.verdict is not None
    return one.verdict


def table(name: str, made: Table) -> Change:
    return lambda one: replace(one, tables={**one.tables, name: made})


def cell(table_name: str, column: str, row: int, value: float) -> Change:
    def changed(one: Payload) -> Payload:
        columns = []
        for old in one.tables[table_name].columns:
            values = old.values.copy()
            if old.name == column:
                values[row] = value
            columns.append(replace(old, values=values))
        return replace(
            one, tables={**one.tables, table_name: replace(one.tables[table_name], columns=tuple(columns))}
        )

    return changed


def scalar(name: str, value: float | None) -> Change:
    return lambda one: with_scalar(one, name, value)


BROKEN: list[tuple[str, str, Change, str]] = [
    (
        "facts agree",
        "input_pipeline_analyzer",
        scalar("step_time_avg_ps", 31.0),
        "30.0 (overview_page), 31.0 (input_pipeline_analyzer)",
    ),
    ("facts agree", "input_pipeline_analyzer", scalar("n_steps", None), "None (input_pipeline_analyzer)"),
    (
        "labels tell apart",
        "input_pipeline_analyzer",
        scalar("input_fraction", 0.5),
        "0.4 (no base said) and 0.5 (no base said)",
    ),
    (
        "headlines are first",
        "hlo_stats",
        subject(name="add", values={"total_self_time_ps": 60.0}),
        "the first row of ops",
    ),
    (
        "headlines are first",
        "hlo_stats",
        subject(values={"total_self_time_ps": 149.0}),
        "is 149.0, the table's 150.0",
    ),
    ("headlines are first", "hlo_stats", subject(name="conv"), "not in the table"),
    (
        "headlines are first",
        "hlo_stats",
        said("`add` takes the most time: 60.0 ps."),
        "the verdict names `add`",
    ),
    ("headlines are first", "hlo_stats", said("`mm` takes the most time: 140 ps."), "has 150 ps in ops"),
    ("headlines are first", "hlo_stats", said("`mm` takes the most time: 150 ps, 12.5%."), "has the shares"),
    ("headlines are first", "hlo_stats", said("`conv` takes the most time."), "no row of ops is called by"),
    ("parts sum up", "hlo_stats", table("by_op", _shares(0.5, 0.3)), "sum up to 0.8000"),
    (
        "parts sum up",
        "overview_page",
        cell("steps", "input_ps", 2, 20),
        "step 2: its parts sum up to 50 ps, it takes 60 ps",
    ),
    ("shares are shares", "hlo_stats", table("by_op", _shares(1.2, -0.2)), "between -0.2 and 1.2"),
    ("shares are shares", "hlo_stats", cell("ops", "flops_fraction", 2, 1.06), "lies between 0 and 1.06"),
    ("rates respect peaks", "hlo_stats", cell("ops", "hbm_bytes_per_s", 2, 1.06e12), "its peak is 1e+12"),
    ("busy and idle are all", "overview_page", scalar("device_busy_ps", 301), "busy for 301 ps of 300 ps"),
    ("busy and idle are all", "overview_page", scalar("device_idle_fraction", 0.3), "busy leaves 0.20000"),
    ("savings are smaller", "hlo_stats", detail("The job would save 110% of each step."), "110%"),
    (
        "savings are smaller",
        "hlo_stats",
        detail("The job would save 27.6 ms of 25.1 ms."),
        "27.6 ms of 25.1 ms",
    ),
    ("savings are smaller", "pod_viewer", table("stragglers", _gain(61.0)), "a gain of 61 ps"),
    ("gains are within", "overview_page", cell("findings", "gain_high_ps", 0, 12.1), "gain_high_ps is 12.1"),
    ("gains are within", "overview_page", cell("findings", "gain_low_ps", 0, 12.1), "gain_low_ps is 12.1"),
    (
        "gains are within",
        "overview_page",
        lambda one: cell("findings", "time_ps", 0, 15.0)(replace(one, hosts=("a",))),
        "finding 0 takes 15 ps, its cause Input 12 ps",
    ),
    (
        "gains are within",
        "hlo_stats",
        links("See it (expected gain of prefetch alone: 5.00 ps to 12.2 ps per step)"),
        "promises 12.2 ps, the largest finding takes 12 ps",
    ),
    (
        "words fit the framework",
        "hlo_stats",
        detail("Avoid block_until_ready in each step."),
        "'block_until_ready' on a run of PyTorch",
    ),
    ("words fit the framework", "overview_page", table("recommendations", _advice("Use Keras.")), "'Keras'"),
    ("marks agree", "tf_data_bottleneck_analysis", table("chosen", _call("Prefetch")), "marks `Prefetch`"),
    (
        "limits agree",
        "input_pipeline_analyzer",
        said("Not input-bound: no step waits for data."),
        "does not open with",
    ),
    (
        "limits agree",
        "tf_data_bottleneck_analysis",
        said("tf.data keeps up."),
        "is about Input and does not open with",
    ),
    (
        "limits agree",
        "hlo_stats",
        said("`mm` takes 150 ps. Highly compilation-bound: …"),
        "of a job whose first finding is Input",
    ),
    (
        "limits agree",
        "hlo_stats",
        detail("Compute-bound: no other cost is significant."),
        "of a job whose first finding is Input",
    ),
    (
        "limits agree",
        "pod_viewer",
        lambda one: replace(one, verdict=Verdict("warn", "Possibly input-bound: …")),
        "`Possibly input-bound`",
    ),
    ("limits agree", "hlo_stats", detail(LIMIT.format(41)), "says 41.0% of what takes 40.0%"),
    (
        "limits agree",
        "hlo_stats",
        detail("Input takes 5.00 ps (12.0%) of each step."),
        "says that input takes 12.0%",
    ),
    (
        "limits agree",
        "overview_page",
        detail("Moderately communication-bound: …"),
        "whose first finding is Input",
    ),
    (
        "pages open well",
        "roofline_model",
        lambda one: replace(one, tiles=("hbm",)),
        "tile `hbm` has no value",
    ),
    ("pages open well", "overview_page", lambda one: replace(one, tiles=("n_steps",) * 7), "shows 7 tiles"),
    (
        "pages open well",
        "overview_page",
        lambda one: replace(
            one,
            scalars={**one.scalars, "idle": Scalar(0.4, "fraction", "Idle")},
            tiles=("input_fraction", "idle"),
        ),
        "tiles `input_fraction` and `idle` are both 0.4",
    ),
    ("pages open well", "hlo_stats", links("See it", "See them"), "links twice"),
    (
        "pages open well",
        "overview_page",
        lambda one: links("See it")(
            replace(one, tables={**one.tables, "recommendations": _advice("See it.", "op_profile")})
        ),
        "lists op_profile under Next and under What to do next",
    ),
    (
        "pages open well",
        "hlo_stats",
        links("See what limits this job (expected gain if fully fixed: 5.00 ps per step)"),
        "promise unlike gains",
    ),
    (
        "verdicts agree",
        "input_pipeline_analyzer",
        lambda one: replace(one, verdict=Verdict("good", "Not input-bound.")),
        "is good",
    ),
]


def test_what_limits_the_job_may_be_said_everywhere() -> None:
    assert violations({**pages(), "hlo_stats": detail(LIMIT.format(40))(pages()["hlo_stats"])}) == []


def test_where_the_overview_does_not_go_by_findings_pages_need_not() -> None:
    apart = said("The captures of 3 hosts do not overlap in time.")(pages()["overview_page"])
    other = replace(
        pages()["input_pipeline_analyzer"], verdict=Verdict("bad", "Highly output-bound.", "output")
    )
    changed = {
        **pages(),
        "overview_page": replace(apart, verdict=replace(_verdict(apart), category="")),
        "input_pipeline_analyzer": other,
    }
    assert [one for one in violations(changed) if one.rule == "limits agree"] == []


def test_pages_that_agree_have_no_violations() -> None:
    assert violations(pages()) == []


@pytest.mark.parametrize(
    ("rule", "page", "change", "words"), BROKEN, ids=[f"{i} {rule}" for i, (rule, *_) in enumerate(BROKEN)]
)
def test_what_is_broken_is_found(rule: str, page: str, change: Change, words: str) -> None:
    found = [one for one in violations({**pages(), page: change(pages()[page])}) if one.rule == rule]
    assert found
    assert page in found[0].pages
    assert any(words in str(one) for one in found), found


def test_no_diagnostic_excuses_a_rate_above_its_peak() -> None:
    above = cell("ops", "flops_fraction", 2, 1.3)(pages()["hlo_stats"])
    told = replace(
        above,
        diagnostics=(Diagnostic("warning", "`add` reaches 130% of its peak: the stated peak is too low."),),
    )
    assert [one.rule for one in violations({**pages(), "hlo_stats": told})] == ["shares are shares"]


def test_names_from_the_trace_may_name_any_framework() -> None:
    named = cell("ops", "total_self_time_ps", 0, 150.0)(pages()["hlo_stats"])
    column = text_column("op", "Operation", ("mm", "IDLE", "jax.numpy.add", "relu"))
    ops = replace(named.tables["ops"], columns=(column, *named.tables["ops"].columns[1:]))
    quoting = detail("`jax.numpy.add` comes second.")(table("ops", ops)(named))
    assert violations({**pages(), "hlo_stats": quoting}) == []
    assert [
        one.rule
        for one in violations({**pages(), "hlo_stats": detail("jax.numpy.add comes second.")(quoting)})
    ] == ["words fit the framework"]


@pytest.mark.parametrize(
    ("text", "framework", "words"),
    [
        ("Use `torch.compile`.", "PyTorch", []),
        ("Use `torch.compile`.", "JAX", ["torch.compile"]),
        ("End it with prefetch(tf.data.AUTOTUNE).", "JAX", ["tf.data"]),
        ("End it with prefetch(tf.data.AUTOTUNE).", "JAX, with tf.data", []),
        ("tf.function(jit_compile=True)", "TensorFlow Serving", []),
        ("tf.function(jit_compile=True)", "PyTorch", ["tf.function", "jit_compile"]),
    ],
)
def test_words_of_frameworks(text: str, framework: str, words: list[str]) -> None:
    assert foreign_words(text, framework) == words


@pytest.mark.parametrize(("excess_ps", "n_violations"), [(20.0, 0), (20.9, 0), (22.0, 1), (15.0, 1)])
def test_a_slow_host_with_another_excess_on_the_pod_viewer_is_found(
    excess_ps: float, n_violations: int
) -> None:
    sentence = "`b` is slower than the other hosts: its own work takes 20.0 ps (9.0%) longer per step."
    said_by_overview = table("findings", _findings("Input", sentence, 0.4))(pages()["overview_page"])
    shown_by_pod = table("stragglers", _stragglers(excess_ps))(pages()["pod_viewer"])
    both = {"overview_page": said_by_overview, "pod_viewer": shown_by_pod}
    assert len(list(slow_hosts_agree(both))) == n_violations


def test_a_gpu_that_idles_for_unlike_times_on_two_pages_is_found() -> None:
    overview, pod = pages()["overview_page"], pages()["pod_viewer"]
    idle = {**overview.scalars, "device_idle_fraction": Scalar(0.302, "fraction", "GPU idle", "of the steps")}
    both = {
        "overview_page": replace(
            overview, scalars={**idle, "device_busy_ps": Scalar(None, "ps", "Device busy", "not traced")}
        ),
        "pod_viewer": replace(pod, scalars={**pod.scalars, "n_steps": Scalar(3, "count", "Steps")}),
    }
    for share, n in ((0.3021, 0), (0.651, 1)):
        theirs = {
            **both["pod_viewer"].scalars,
            "all_idle_fraction": Scalar(share, "fraction", "All idle at once"),
        }
        found = violations({**both, "pod_viewer": replace(both["pod_viewer"], scalars=theirs)})
        assert [one.rule for one in found] == ["idle times agree"] * n
