"""Verdicts of pages combined with the diagnosis: its first finding on pages about it, else the
job's limit.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import CauseTime, Culprit, Diagnosis, Finding
from tb_tpuprof.analysis.ops.recommend import Finding as Judged
from tb_tpuprof.analysis.steps.record import no_steps
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools, get_tool, verdicts
from tb_tpuprof.tools.input_verdict import by_causes, input_share
from tb_tpuprof.tools.payload import NextStep, Verdict
from tb_tpuprof.tools.verdicts import (
    SUBJECTS,
    JobLimits,
    is_diagnosed,
    limit_sentence,
    limits_of,
    with_limits,
)
from tb_tpuprof.trace.trace import Trace
from tests.analysis.diagnosis.drawn import NOBODY, function, trace_of
from tests.golden_files import demo_runs
from tests.synthetic import GpuJob, Parts, gpu_xspace, write_run
from tests.tools.drawn_session import session_of

MS = 10**9
OWN = Verdict(
    "unknown",
    "`dot` takes the most time.",
    "compute",
    ("It is a fact.",),
    (NextStep("See it", "trace_viewer"),),
)


def compiling() -> Trace:
    """Steps that compile for half of their time."""
    return trace_of("""
        main  [train               ]  [train               ]  [train               ]
        main    [g          ]           [g          ]           [g          ]
        main      [c   ]                  [c   ]                  [c   ]
        main                  [d  ]                   [d  ]                   [d  ]
        """)


def loading() -> Trace:
    """Steps that wait in a generator for half of their time."""
    return trace_of("""
        main  [train               ]  [train               ]  [train               ]
        main   [n        ]             [n        ]             [n        ]
        main    [b      ]               [b      ]               [b      ]
        main                [d    ]                 [d    ]                 [d    ]
        """)


def said(tool: str, session: Session) -> Verdict:
    verdict = get_tool(tool).run(session, None, {}).verdict
    assert verdict is not None
    return verdict


def finding(cause: Cause, share: float, culprit: Culprit = NOBODY, base: str = "of the mean step") -> Finding:
    sentence = f"{cause.label} costs {share:.0%}."
    return Finding(
        cause,
        sentence,
        share * MS,
        share,
        "That is why.",
        culprit,
        base=base,
        gain_ps=(0.5 * share * MS, share * MS),
        fix="Do it.",
    )


def limits(*findings: Finding, kind: str = "CPU", input_ps: float = 0.0) -> JobLimits:
    """The diagnosis of steps of 1 ms, of findings by gain."""
    level = "good" if not findings else "bad" if findings[0].share >= 0.2 else "warn"
    causes = (CauseTime(Cause.INPUT, input_ps, input_ps / MS),) if input_ps else ()
    text = f"The verdict: {findings[0].sentence}" if findings else "Compute-bound."
    return JobLimits(Diagnosis(level, text, MS, 3, findings, causes, True), kind)  # type: ignore[arg-type]


@pytest.mark.parametrize("tool", ["framework_op_stats", "pod_viewer", "input_pipeline_analyzer"])
def test_pages_of_a_job_that_compiles_name_that_and_lead_to_the_overview(tool: str) -> None:
    session = session_of(compiling())
    assert said("overview_page", session).text.startswith(
        "Highly compilation-bound: compiling `grow` takes 13.0 µs (54.2%) of each step; it compiles in 2 of 2"
    )
    verdict = said(tool, session)
    limit = "This job is limited by compilation of `grow`, 54.2% of the mean step: see the overview."
    # A page that compares hosts has nothing else to say of one.
    assert verdict.text.startswith(limit) if tool == "pod_viewer" else verdict.text.endswith(f". {limit}")
    assert verdict.next[0] == NextStep(
        "See what limits this job (expected gain if fully fixed: 11.7 µs to 13.0 µs per step)",
        "overview_page",
    )


def test_the_page_of_the_subject_opens_with_the_overviews_sentence_and_its_gain() -> None:
    session = session_of(loading())
    overview, page = said("overview_page", session), said("input_pipeline_analyzer", session)
    assert overview.text.startswith("Highly input-bound: each step waits ")
    assert (page.level, page.category, page.text) == ("bad", "input", overview.text)
    assert page.details[0] == overview.details[0]
    assert page.next[0].text.startswith("See how to fix it (expected gain if fully fixed: ")
    assert "This job is limited" not in page.text
    assert said("framework_op_stats", session).text.endswith("of the mean step: see the overview.")


def test_a_healthy_job_leaves_pages_their_own_verdict() -> None:
    steps, computing = (" ".join(f"{name.ljust(98)}]" for _ in range(3)) for name in ("[train", "[d"))
    session = session_of(trace_of(f"main {steps}\nmain {computing}"))
    assert said("framework_op_stats", session).text.startswith("`dot` takes the most time")
    assert "limits" not in said("framework_op_stats", session).text
    assert said("input_pipeline_analyzer", session).text == "Not input-bound: no step waits for data."


def test_without_steps_there_is_nothing_to_say() -> None:
    assert limits_of(session_of(trace_of("main  [d    ]  [d    ]")), ["worker-0"]) is None


def test_hosts_that_were_captured_at_other_times_have_no_limit_in_common(tmp_path: Path) -> None:
    days = 148 * 86_400 * 10**9
    jobs = [
        GpuJob(Parts(0.99 - share, collective=share), step_ps=int(MS + MS * share), start_ns=10**15)
        for share in (0.3, 0.06)
    ]
    for name, gap in (("at_once", 0), ("apart", days)):
        files = {
            f"h{i}": gpu_xspace(replace(job, start_ns=job.start_ns + i * gap), f"h{i}")
            for i, job in enumerate(jobs)
        }
        session = Session(str(write_run(tmp_path / name, files)), cache=False)
        assert (limits_of(session, session.hosts) is None) == bool(gap)
        assert limits_of(session, ["h0"]) is not None


def test_the_first_answer_of_a_large_run_does_not_wait_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "QUICK_BYTES", 0)
    session, tool = Session(str(demo_runs()["jax_train"]), cache=False), get_tool("framework_op_stats")
    first = tool.run(session, None, {}, waits=False)
    assert not first.is_diagnosed
    assert first.verdict is not None
    assert "limits" not in first.verdict.text
    whole = tool.run(session, None, {})
    assert whole.is_diagnosed
    assert whole.verdict is not None
    assert "This job is limited by waiting for data in `make_batch`" in whole.verdict.text
    assert tool.run(session, None, {}, waits=False).verdict == whole.verdict
    assert (
        get_tool("trace_viewer")
        .run(Session(session.info.path, cache=False), None, {}, waits=False)
        .is_diagnosed
    )


def test_a_verdict_does_not_depend_on_what_was_opened_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "QUICK_BYTES", 0)
    path = str(demo_runs()["jax_train"])
    after_overview = Session(path, cache=False)
    overview = said("overview_page", after_overview)
    for tool in ("framework_op_stats", "input_pipeline_analyzer", "memory_profile"):
        if get_tool(tool).availability(after_overview):
            assert said(tool, Session(path, cache=False)) == said(tool, after_overview)
    assert said("input_pipeline_analyzer", after_overview).text == overview.text


def test_a_damaged_host_keeps_no_page_from_waiting_for_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "QUICK_BYTES", 0)
    content = next(demo_runs()["jax_train"].glob("*.xplane.pb")).read_bytes()
    session = Session(str(write_run(tmp_path, {"a": content, "b": b"\x0a\xff"})), cache=False)
    page = get_tool("framework_op_stats").run(session, None, {})
    assert page.hosts == ("a",)
    assert page.is_diagnosed
    assert page.verdict is not None
    assert "This job is limited by waiting for data" in page.verdict.text


def test_what_an_earlier_process_kept_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(verdicts, "QUICK_BYTES", 0)
    path = str(demo_runs()["jax_train"])
    assert limits_of(Session(path), Session(path).hosts) is None
    said("overview_page", Session(path))
    later = Session(path)
    kept_limits = limits_of(later, later.hosts)
    assert kept_limits is not None
    assert kept_limits.top is not None
    assert kept_limits.top.cause == Cause.INPUT
    assert limits_of(later, later.hosts) is kept_limits


def test_nobody_waits_for_a_host_that_is_not_there() -> None:
    assert is_diagnosed("kernel_stats", Session(str(demo_runs()["jax_train"]), cache=False), ["nobody"])


@pytest.mark.parametrize(
    ("tool", "top", "kind", "is_about"),
    [
        ("kernel_stats", finding(Cause.DISPATCH, 0.4), "GPU", True),
        ("framework_op_stats", finding(Cause.DISPATCH, 0.4), "CPU", False),
        ("hlo_stats", finding(Cause.COMPUTE, 0.4), "TPU", True),
        ("pod_viewer", finding(Cause.COMMUNICATION, 0.4), "TPU", True),
        ("pod_viewer", finding(Cause.INPUT, 0.4, Culprit("host", "w1")), "CPU", True),
        ("input_pipeline_analyzer", finding(Cause.INPUT, 0.4, Culprit("host", "w1")), "CPU", True),
        ("hlo_stats", finding(Cause.INPUT, 0.4, Culprit("host", "w1")), "CPU", False),
        ("memory_profile", finding(Cause.TRANSFERS, 0.4), "GPU", True),
        ("memory_profile", finding(Cause.COMPUTE, 0.4), "GPU", False),
    ],
)
def test_what_a_page_is_about(tool: str, top: Finding, kind: str, is_about: bool) -> None:
    verdict = with_limits(tool, OWN, limits(top, kind=kind))
    assert verdict is not None
    if is_about:
        assert (verdict.level, verdict.text) == ("bad", f"The verdict: {top.sentence} {OWN.text}")
        assert verdict.details == ("That is why.", "It is a fact.")
        assert [step.tool for step in verdict.next] == ["overview_page", "trace_viewer"]
        assert (
            verdict.next[0].text
            == "See how to fix it (expected gain if fully fixed: 200 µs to 400 µs per step)"
        )
    else:
        assert (verdict.level, verdict.text) == ("unknown", f"{OWN.text} {limit_sentence(top)}")
        assert [step.tool for step in verdict.next] == ["overview_page", "trace_viewer"]
        assert verdict.details == OWN.details


def test_a_small_cost_elsewhere_is_no_limit() -> None:
    assert with_limits("hlo_stats", OWN, limits(finding(Cause.COMPILATION, 0.19))) == OWN
    assert with_limits("hlo_stats", OWN, limits()) == OWN
    assert with_limits("hlo_stats", OWN, None) == OWN
    assert with_limits("hlo_stats", None, limits(finding(Cause.COMPUTE, 0.5))) is None


@pytest.mark.parametrize(
    ("top", "words"),
    [
        (
            finding(Cause.COMPILATION, 0.634, Culprit("program", "step")),
            "compilation of `step`, 63.4% of the mean step",
        ),
        (
            finding(Cause.PYTHON, 0.3, function("update")),
            "Python in `update` (mine.py:40), 30.0% of the mean step",
        ),
        (
            finding(Cause.PYTHON, 0.3, Culprit("annotation", "prepare")),
            "time in `prepare`, 30.0% of the mean step",
        ),
        (
            finding(Cause.INPUT, 0.3, Culprit("stage", "Map"), "of w1's mean step"),
            "waiting for data, 30.0% of w1's mean step",
        ),
        (
            finding(Cause.INPUT, 0.3, Culprit("host", "w1"), "of w1's mean step"),
            "the slow host `w1`, 30.0% of w1's mean step",
        ),
        (finding(Cause.UNRECORDED, 0.3), "unrecorded time, 30.0% of the mean step"),
    ],
)
def test_the_limit_in_words(top: Finding, words: str) -> None:
    assert limit_sentence(top) == f"This job is limited by {words}: see the overview."


def test_every_cause_that_can_limit_has_a_word() -> None:
    assert all(limit_sentence(finding(cause, 0.5)).startswith("This job is limited by ") for cause in Cause)
    assert set(SUBJECTS) < {tool.name for tool in all_tools()}


def test_the_share_of_the_input_is_the_diagnosis_s() -> None:
    compiles, waits = finding(Cause.COMPILATION, 0.5), finding(Cause.INPUT, 0.25)
    assert input_share(limits(waits)) == ("bad", "The verdict: Input costs 25%.")
    assert input_share(limits(compiles, waits)) == ("bad", "Input costs 25%.")
    assert input_share(limits(compiles, replace(waits, share=0.1))) == ("warn", "Input costs 25%.")
    assert input_share(limits(compiles, input_ps=0.012 * MS)) == (
        "good",
        "Input takes 12.0 µs (1.20%) of each step.",
    )
    assert input_share(limits(compiles)) == ("good", "No waiting for data was traced.")


def test_unrecorded_time_may_be_waiting_where_nothing_says_otherwise() -> None:
    unseen = limits(finding(Cause.UNRECORDED, 0.4), input_ps=0.01 * MS)
    possibly = by_causes(Judged("warn", "other", ""), no_steps(), unseen)
    assert (possibly.level, possibly.category) == ("warn", "other")
    assert (
        possibly.text
        == "Possibly input-bound: input takes 10.0 µs (1.00%) of each step, but 400 µs (40.0%) of the mean "
        "step was not recorded, which may also be time spent waiting for data."
    )
    # Each step's fetch was traced: what was not recorded is none.
    assert (
        by_causes(Judged("good", "input", ""), no_steps(), unseen).text
        == "Input takes 10.0 µs (1.00%) of each step."
    )
    assert (
        by_causes(Judged("warn", "other", ""), no_steps(), limits(finding(Cause.PERIODIC, 0.4))).level
        == "good"
    )


def test_numbers_by_kind_of_time_are_told_apart() -> None:
    differing = by_causes(Judged("good", "input", ""), no_steps(), limits(input_ps=0.02 * MS))
    assert differing.details == ("The numbers below group time by kind: there, 0% of the steps is input.",)
    assert differing.text == "Not input-bound: input takes 20.0 µs (2.00%) of each step."
    assert by_causes(Judged("good", "input", "", ("First.",)), no_steps(), limits()).details == ("First.",)


@pytest.mark.parametrize(("share", "level"), [(0.1999, "warn"), (0.2, "bad"), (0.2001, "bad")])
def test_input_is_bad_from_a_fifth_of_the_step_on(share: float, level: str) -> None:
    waits = replace(finding(Cause.INPUT, 0.25), share=share)
    assert input_share(limits(finding(Cause.COMPILATION, 0.5), waits))[0] == level
