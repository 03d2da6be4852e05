"""The exam's scorer on diagnoses made up here: what is right must count as right, and what is
wrong as wrong.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.exam.__main__ import main
from tests.exam.score import (
    Mark,
    explained,
    gain,
    is_culprit_right,
    mark,
    marks,
    met,
    ready,
    report,
    sums_to_step,
)

PS = 1e12


def truth(cause: str = "python", **more: Any) -> dict[str, Any]:
    """A job of 40 ms a step; the planted function is `hop` in lines 10 to 15 of `reed.py`."""
    place = {"name": "hop", "file": "reed.py", "line": 10, "last_line": 15}
    culprit = {"function": "hop", "names": ["hop", "Map"], "places": [place], "visible": True}
    return {
        "name": "j001",
        "label": "j001",
        "cause": cause,
        "second": "",
        "accepted": [[cause]] if cause else [],
        "target": [0.3, 0.0],
        "tracer": 1,
        "hidden": [False],
        "culprits": [culprit],
        "host": "",
        "step_s": 0.04,
        "share": 0.3,
        "gain_s": 0.012,
        "gain_noise_s": 0.001,
        **more,
    }


def finding(cause: str = "python", **more: Any) -> dict[str, Any]:
    culprit = {"kind": "function", "name": "hop", "file": "reed.py", "line": 10}
    return {
        "cause": cause,
        "culprit": culprit,
        "share": 0.3,
        "gain_ps": [0.010 * PS, 0.014 * PS],
        "capture_option": "",
        "host": "",
        **more,
    }


def answer(*findings: dict[str, Any], **more: Any) -> dict[str, Any]:
    causes = [{"cause": "python", "time_ps": 0.012 * PS}, {"cause": "device_compute", "time_ps": 0.028 * PS}]
    level = "bad" if findings else "good"
    return {
        "level": level,
        "text": "",
        "step_time_ps": 0.04 * PS,
        "findings": list(findings),
        "causes": causes,
        **more,
    }


def test_all_is_right() -> None:
    result = mark(truth(), answer(finding()))
    assert (
        result.is_right,
        result.is_culprit_right,
        result.has_gain,
        result.is_gain_inside,
        result.is_sum_right,
    ) == (True,) * 5
    assert result.gain_error == pytest.approx(0)
    assert result.step_error == pytest.approx(0)
    assert (result.is_order_right, result.is_host_right) == (None, None)
    assert result.why == ""


@pytest.mark.parametrize(
    ("mechanism", "tracer", "framework", "is_unseen"),
    [
        ("other processes", 1, "jax", True),
        ("threads spin", 0, "jax", True),
        ("threads spin", 1, "tensorflow", True),
        ("threads spin", 1, "jax", False),
    ],
)
def test_contention_without_any_event_is_counted_apart(
    mechanism: str, tracer: int, framework: str, is_unseen: bool
) -> None:
    planted = truth("contention", mechanisms=[mechanism], tracer=tracer, framework=framework)
    result = mark(planted, answer())
    assert result.is_unseen == is_unseen
    text = report([result, mark(truth(), answer(finding()))])
    assert ("j001 (answered nothing)" in text) == is_unseen
    assert ("1 of 2" in text) != is_unseen


def test_only_the_first_finding_counts() -> None:
    result = mark(truth(), answer(finding("input"), finding("python")))
    assert not result.is_right
    assert result.answered == "input"
    assert result.why == "answered input"
    assert result.is_culprit_right is None
    assert result.has_gain is None


def test_no_finding_and_no_answer_are_wrong() -> None:
    assert mark(truth(), answer()).answered == "nothing"
    assert not mark(truth(), answer()).is_right
    assert mark(truth(), None).answered == "no answer"
    assert not mark(truth(), None).is_right
    assert not mark(truth(""), None).is_right


def test_any_accepted_cause_is_right() -> None:
    assert mark(
        truth("periodic", accepted=[["periodic", "callbacks"]]), answer(finding("callbacks"))
    ).is_right
    assert not mark(truth("periodic"), answer(finding("callbacks"))).is_right


NOT_RECORDED = {
    "culprit": {"kind": "", "name": ""},
    "capture_option": "python_tracer_level=1",
    "gain_ps": None,
}


def test_what_the_trace_cannot_show_may_be_called_not_recorded() -> None:
    unseen = truth(tracer=0, hidden=[True], culprits=[{**truth()["culprits"][0], "visible": False}])
    result = mark(unseen, answer(finding("not_recorded", **NOT_RECORDED)))
    assert result.is_right
    assert result.is_culprit_right is None
    assert result.has_gain is None
    assert mark(unseen, answer(finding("python"))).is_right
    assert not mark(unseen, answer(finding("input"))).is_right
    assert not mark(
        unseen, answer(finding("not_recorded", **{**NOT_RECORDED, "capture_option": ""}))
    ).is_right
    assert not mark(
        unseen, answer(finding("not_recorded", **{**NOT_RECORDED, "capture_option": "host_tracer_level=3"}))
    ).is_right


def test_what_the_trace_shows_may_not_be_called_not_recorded() -> None:
    assert not mark(truth(), answer(finding("not_recorded", **NOT_RECORDED))).is_right
    assert not mark(truth(tracer=0), answer(finding("not_recorded", **NOT_RECORDED))).is_right


@pytest.mark.parametrize(
    ("culprit", "is_right"),
    [
        ({"name": "hop", "file": "reed.py", "line": 10}, True),
        ({"name": "hop", "file": "deep/down/reed.py", "line": 15}, True),
        ({"name": "hop", "file": "reed.py"}, True),
        ({"name": "hop"}, True),
        ({"name": "hop()"}, True),
        ({"name": "Class.hop"}, True),
        ({"name": "jit(hop)"}, True),
        ({"name": "Thread-3 (hop)"}, True),
        ({"name": "hop(tick)"}, False),
        ({"name": "Iterator::Root::Map"}, True),
        ({"name": "Map", "file": "dataset_ops.py", "line": 3}, True),
        ({"name": "hop", "file": "pine.py", "line": 10}, False),
        ({"name": "hop", "file": "reed.py", "line": 9}, False),
        ({"name": "hop", "file": "reed.py", "line": 16}, False),
        ({"name": "hop", "line": 16}, False),
        ({"name": "hops", "file": "reed.py", "line": 10}, False),
        ({"name": "Map", "file": "reed.py", "line": 90}, False),
        ({"name": ""}, False),
        ({}, False),
    ],
)
def test_culprit(culprit: dict[str, Any], is_right: bool) -> None:
    assert is_culprit_right(truth()["culprits"][0], culprit) is is_right


def test_a_wrong_culprit_is_a_miss_though_the_class_is_right() -> None:
    result = mark(truth(), answer(finding(culprit={"name": "tick", "file": "reed.py", "line": 3})))
    assert result.is_right
    assert result.is_culprit_right is False
    assert result.why == "named tick reed.py 3, not hop"


def test_a_culprit_that_cannot_be_seen_is_not_asked_for() -> None:
    unseen = truth(culprits=[{**truth()["culprits"][0], "visible": False}])
    assert mark(unseen, answer(finding(culprit={"name": "tick"}))).is_culprit_right is None


def test_host() -> None:
    assert mark(truth(host="n2"), answer(finding(host="n2"))).is_host_right is True
    assert mark(truth(host="n2"), answer(finding(host="n1"))).is_host_right is False


def pair(**more: Any) -> dict[str, Any]:
    culprit = truth()["culprits"][0]
    return truth(
        "input",
        second="python",
        accepted=[["input"], ["python"]],
        hidden=[True, True],
        culprits=[culprit, culprit],
        second_gain_s=0.005,
        **more,
    )


def test_pairs_are_told_in_order() -> None:
    assert mark(pair(), answer(finding("input"), finding("python"))).is_order_right is True
    assert (
        mark(pair(), answer(finding("input"), finding("dispatch"), finding("python"))).is_order_right is False
    )
    assert mark(pair(), answer(finding("input"))).is_order_right is False
    assert not mark(pair(), answer(finding("python"), finding("input"))).is_right


def test_a_second_cause_that_the_trace_hides_may_be_told_as_such() -> None:
    unrecorded = {**finding("not_recorded"), **NOT_RECORDED}
    assert mark(pair(), answer(finding("input"), unrecorded)).is_order_right is True
    assert (
        mark(pair(), answer(finding("input"), {**unrecorded, "capture_option": ""})).is_order_right is False
    )


def test_the_larger_measured_gain_comes_first() -> None:
    turned = pair(gain_s=0.004)
    assert mark(turned, answer(finding("python"), finding("input"))).is_order_right is True
    assert not mark(turned, answer(finding("input"), finding("python"))).is_right


@pytest.mark.parametrize(
    ("findings", "level", "is_right"),
    [
        ([], "good", True),
        ([finding("python", share=0.04)], "good", True),
        ([finding("python", share=0.05)], "good", False),
        ([finding("python", share=0.04), finding("input", share=0.2)], "good", False),
        ([], "warn", False),
        ([], "unknown", False),
    ],
)
def test_healthy(findings: list[dict[str, Any]], level: str, is_right: bool) -> None:
    result = mark(truth("", target=[0.0, 0.0]), answer(*findings, level=level))
    assert result.is_right is is_right
    assert bool(result.why) is not is_right


def test_warm_up_may_be_told_calmly_but_never_as_compilation() -> None:
    warm = truth("warm_up", target=[0.0, 0.0])
    assert mark(warm, answer(finding("warm_up"))).is_right
    assert mark(warm, answer(level="good", text="Healthy; the first step compiled.")).is_right
    assert not mark(warm, answer(level="good", text="Healthy.")).is_right
    assert not mark(warm, answer(finding("compilation"), text="The first step compiled.")).is_right
    assert not mark(
        warm, answer(finding("compilation", share=0.04), text="The first step compiled.")
    ).is_right
    assert not mark(warm, answer(finding("python", share=0.2), text="The first step compiled.")).is_right
    assert mark(warm, answer(finding("python", share=0.02), text="The first step compiled.")).is_right


def test_gain() -> None:
    assert gain([0.010 * PS, 0.014 * PS], 0.012) == {
        "has_gain": True,
        "is_gain_inside": True,
        "gain_error": pytest.approx(0),
    }
    assert gain([0.010 * PS, 0.014 * PS], 0.016) == {
        "has_gain": True,
        "is_gain_inside": False,
        "gain_error": pytest.approx(0.25),
    }
    assert gain([0.013 * PS, 0.015 * PS], 0.010) == {
        "has_gain": True,
        "is_gain_inside": False,
        "gain_error": pytest.approx(0.4),
    }
    assert gain([0.010 * PS, 0.014 * PS], 0.016, 0.0025)["is_gain_inside"]
    assert not gain([0.010 * PS, 0.014 * PS], 0.016, 0.0015)["is_gain_inside"]
    assert gain(None, 0.012) == {"has_gain": False}


def test_a_gain_that_was_not_measured_well_is_not_asked_for() -> None:
    assert mark(truth(gain_noise_s=0.004), answer(finding())).has_gain is None
    assert mark(truth(gain_s=-0.001), answer(finding())).has_gain is None
    without = {key: value for key, value in truth().items() if not key.startswith("gain")}
    assert mark(without, answer(finding())).has_gain is None


def test_causes_sum_to_the_step() -> None:
    def of(*times_ps: float) -> dict[str, Any]:
        return answer(causes=[{"cause": "python", "time_ps": time} for time in times_ps])

    assert sums_to_step(of(0.03 * PS, 0.01 * PS))
    assert sums_to_step(of(0.03 * PS, 0.0103 * PS))
    assert not sums_to_step(of(0.03 * PS, 0.0105 * PS))
    assert not sums_to_step(of(0.03 * PS))
    assert not sums_to_step(of())
    assert mark(truth(), answer(finding(), causes=[])).is_sum_right is False


def test_a_cause_that_came_out_small_is_left_out() -> None:
    small = mark(truth(share=0.03), answer())
    assert small.is_small
    text = report([small, mark(truth(), answer(finding()))])
    assert "measured below 5%: j001." in text
    assert "| all | 1 | 1 of 1 (100%) |" in text


def some() -> list[Mark]:
    return [
        mark(truth(), answer(finding())),
        mark(truth(target=[0.8, 0.0]), answer(finding("input"))),
        mark(
            truth("input", accepted=[["input"]], tracer=0),
            answer(finding("input", gain_ps=[0.020 * PS, 0.028 * PS])),
        ),
        mark(truth("", target=[0.0, 0.0]), answer()),
        mark(truth("", target=[0.0, 0.0]), answer(finding("dispatch"))),
    ]


def test_report_counts() -> None:
    lines = report(some()).splitlines()
    assert "Healthy jobs: 2, false alarms: 1, without a verdict: 0." in lines
    assert "Causes sum to the step: 5 of 5 (100%). Step time, median error: 0%." in lines
    assert (
        "| python | 2 | 1 of 2 (50%) | 1 of 1 (100%) | — | — | 1 of 1 (100%) | 1 of 1 (100%) | 0% |" in lines
    )
    assert (
        "| input | 1 | 1 of 1 (100%) | 1 of 1 (100%) | — | — | 0 of 1 (0%) | 1 of 1 (100%) | 100% |" in lines
    )
    assert "| all | 3 | 2 of 3 (67%) | 2 of 2 (100%) | — | — | 1 of 2 (50%) | 2 of 2 (100%) | 50% |" in lines
    assert "| share 80% | 1 | 0 of 1 (0%) | — | — | — | — | — | — |" in lines
    assert (
        "| Python tracer off | 1 | 1 of 1 (100%) | 1 of 1 (100%) | — | — | 0 of 1 (0%) | 1 of 1 (100%) | "
        "100% |" in lines
    )


def test_confusion() -> None:
    lines = report(some()).splitlines()
    assert "|  | dispatch | input | nothing | python |" in lines
    assert "| healthy | 1 |  | 1 |  |" in lines
    assert "| python |  | 1 |  | 1 |" in lines


def test_misses_are_listed() -> None:
    text = report(some())
    assert "- j001: answered input" in text
    assert "- j001: alarm: dispatch" in text
    assert text.count("\n- ") == 2


def test_met_shares() -> None:
    jobs = [
        truth(share=0.2),
        truth(share=0.35),
        truth(share=0.3),
        truth("input", target=[0.4, 0.15], share=0.41, second="python", second_share=0.1),
    ]
    assert met([*jobs, truth("", target=[0.0, 0.0])]).splitlines()[2:] == [
        "| input | 40% | 1 | 41% | 41% | 41% |",
        "| python | 15% | 1 | 10% | 10% | 10% |",
        "| python | 30% | 3 | 20% | 30% | 35% |",
    ]


def test_ready_answers_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, told in (("j001", answer(finding())), ("j002", None)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "truth.json").write_text(
            json.dumps({**truth(), "name": name, "label": name}), "utf-8"
        )
        if told is not None:
            (tmp_path / name / "why.json").write_text(json.dumps(told), "utf-8")
    assert [(one.name, one.is_right, one.answered) for one in marks(tmp_path, ready("why.json"))] == [
        ("j001", True, "python"),
        ("j002", False, "no answer"),
    ]
    monkeypatch.setattr("sys.argv", ["exam", "score", str(tmp_path), "--answers", "why.json"])
    assert main() == 0
    assert "| all | 2 | 1 of 2 (50%)" in capsys.readouterr().out


def test_our_own_diagnosis_is_asked_with_the_run_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = tmp_path / "j001" / "plugins" / "profile" / "2026_01_01"
    run_dir.mkdir(parents=True)

    class Why:
        @staticmethod
        def explain(folder: str) -> dict[str, str]:
            return {"asked": folder}

    monkeypatch.setattr("tests.exam.score.importlib.import_module", {"tb_tpuprof.tools.why": Why}.__getitem__)
    assert explained(tmp_path / "j001") == {"asked": str(run_dir)}
