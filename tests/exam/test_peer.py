"""What the peer's pages say, turned into answers that the exam's scorer reads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.exam import __main__ as exam
from tests.exam.peer import LEAST, PARTS, SENTENCES, answer
from tests.exam.score import mark, report
from tests.exam.test_score import truth

NO_STEPS = "No step time measured. Therefore we cannot tell where the performance bottleneck is."
CALM = (
    "Your program is NOT input-bound because only 0.0% of the total step time sampled is waiting for input. "
    "Therefore, you should focus on reducing other time."
)
BOUND = (
    "Your program is HIGHLY input-bound because 61.5% of the total step time sampled is waiting for input."
)
OTHERS = (
    "Your program is POTENTIALLY input-bound because 96.1% of the total step time sampled is spent on 'All "
    "Others' time (which could be due to I/O or Python execution or both)."
)
LAUNCH = "30.5% of the total step time sampled is spent on 'Kernel Launch'."
TIPS = (
    ("faq", "Refer to the TF2 Profiler FAQ", "Tool troubleshooting / FAQ"),
    ("host", "input_pipeline_analyzer", "Next steps"),
)
IDLE = ("IDLE", "IDLE", 1000.0)


def table(
    ids: tuple[str, ...] = (), rows: tuple[tuple[Any, ...], ...] = (), **properties: str
) -> dict[str, Any]:
    return {
        "cols": [{"id": one} for one in ids],
        "rows": [{"c": [{"v": value} for value in row]} for row in rows],
        "p": properties,
    }


def pages(
    statement: str = NO_STEPS,
    n_steps: int = 0,
    tips: tuple[tuple[str, str, str], ...] = TIPS,
    ops: tuple[tuple[str, str, float], ...] = (),
    more: dict[str, str] | None = None,
    **averages: float,
) -> dict[str, list[dict[str, Any]]]:
    """The peer's pages, shaped as those of a run on the CPU."""
    times = dict.fromkeys((*PARTS, "steptime_ms_average"), 0.0) | averages
    steps = table(
        ("stepnum",),
        ((0,),) * n_steps,
        **{key: str(value) for key, value in times.items()},
        input_conclusion=statement,
    )
    recommendation = table(
        ("tip_type", "link", "description"), tips, bottleneck="x", statement=statement, **(more or {})
    )
    return {
        "overview_page": [table(remark_text=""), steps, table(), recommendation, table(), {}, table()],
        "input_pipeline_analyzer": [{}, steps, table(), table(), table()],
        "framework_op_stats": [table(("type", "operation", "total_self_time"), (IDLE, *ops)), table()],
    }


def told(**given: Any) -> list[tuple[list[str], float]]:
    return [
        ([one["cause"], *one["also"]], round(one["share"], 3)) for one in answer(pages(**given))["findings"]
    ]


def test_a_sentence_names_its_cause() -> None:
    result = answer(
        pages(BOUND, 12, steptime_ms_average=40.0, infeed_time_ms_avg=5.0, host_compute_time_ms_avg=20.0)
    )
    assert result["level"] == "bad"
    assert result["text"].startswith(BOUND)
    assert result["step_time_ps"] == pytest.approx(40e9)
    assert result["n_steps"] == 12
    (one,) = result["findings"]
    assert (one["cause"], one["also"], one["share"]) == ("input", [], 0.615)
    assert one["time_ps"] == pytest.approx(0.615 * 40e9)


def test_a_sentence_that_may_be_read_in_two_ways_is_right_in_both() -> None:
    result = answer(pages(OTHERS, 12, steptime_ms_average=40.0, other_time_ms_avg=38.4))
    for cause in ("input", "python"):
        assert mark(truth(cause), result).is_right
    miss = mark(truth("dispatch"), result)
    assert not miss.is_right
    assert miss.answered == "input or python"


def test_a_calm_verdict_is_none_about_a_cause() -> None:
    result = answer(pages(CALM, 12, steptime_ms_average=40.0, host_compute_time_ms_avg=40.0))
    assert (result["level"], result["findings"]) == ("good", [])
    assert not mark(truth(), result).is_right
    assert mark(truth("", target=[0.0, 0.0]), result).is_right


def test_knowing_nothing_is_no_false_alarm() -> None:
    result = answer(pages())
    assert (result["level"], result["findings"], result["step_time_ps"]) == ("unknown", [], None)
    healthy = mark(truth("", target=[0.0, 0.0]), result)
    assert not healthy.is_right
    alarm = mark(truth("", target=[0.0, 0.0]), answer(pages(OTHERS, 12, steptime_ms_average=40.0)))
    lines = report([healthy, alarm]).splitlines()
    assert "Healthy jobs: 2, false alarms: 1, without a verdict: 1." in lines
    assert "Causes sum to the step: —. Step time, median error: 0%." in lines


def test_a_small_share_is_no_alarm() -> None:
    result = answer(pages(OTHERS.replace("96.1", "3.4"), 12, steptime_ms_average=40.0))
    assert (result["level"], len(result["findings"])) == ("good", 1)
    assert mark(truth("", target=[0.0, 0.0]), result).is_right
    assert mark(truth("input"), result).is_right


def test_what_the_peer_does_not_say_is_not_asked() -> None:
    result = mark(truth("input"), answer(pages(BOUND)))
    assert result.is_right
    assert (result.is_sum_right, result.step_error) == (None, None)
    assert result.is_culprit_right is False
    assert result.has_gain is False


def test_the_largest_share_stands_first() -> None:
    assert told(statement=BOUND.replace("61.5", "21.5"), more={"kernel_launch_statement": LAUNCH}) == [
        (["dispatch"], 0.305),
        (["input"], 0.215),
    ]


@pytest.mark.parametrize(("phrase", "causes"), SENTENCES)
def test_every_sentence_counts_wherever_it_stands(phrase: str, causes: tuple[str, ...]) -> None:
    assert told(tips=(*TIPS, ("doc", "", f"12.5% of the time: {phrase}."))) == [(list(causes), 0.125)]
    assert told(tips=(*TIPS, ("doc", phrase, ""))) == [(list(causes), LEAST)]


@pytest.mark.parametrize(("part", "causes"), PARTS.items())
def test_the_largest_part_counts_if_a_cause_has_its_name(part: str, causes: tuple[str, ...]) -> None:
    given = {**dict.fromkeys(PARTS, 1.0), part: 12.0, "steptime_ms_average": 20.0}
    assert told(statement=CALM, n_steps=3, **given) == ([(list(causes), 0.6)] if causes else [])


@pytest.mark.parametrize(
    ("ops", "found"),
    [
        ((("Dataset", "Iterator::Root::Map", 600.0), ("PyFunc", "PyFunc", 400.0)), [(["input"], 0.3)]),
        (
            (("EagerPyFunc", "EagerPyFunc", 1000.0), ("MatMul", "m", 900.0)),
            [(["callbacks", "python"], 0.345)],
        ),
        ((("Dataset", "Iterator::Root", 600.0), ("MatMul", "m", 700.0)), []),
        ((("Dataset", "Iterator::Root", 50.0),), []),
    ],
)
def test_the_largest_operation(
    ops: tuple[tuple[str, str, float], ...], found: list[tuple[list[str], float]]
) -> None:
    assert told(ops=ops) == found


def test_an_operation_is_the_culprit() -> None:
    (one,) = answer(pages(ops=(("Dataset", "Iterator::Root::Map", 600.0),)))["findings"]
    assert mark(
        truth("input"), answer(pages(ops=(("Dataset", "Iterator::Root::Map", 600.0),)))
    ).is_culprit_right
    assert one["culprit"] == {"name": "Iterator::Root::Map"}


def test_pages_that_are_missing_say_nothing() -> None:
    assert answer({})["findings"] == []
    assert answer({"overview_page": [{}, {}, {}, {}]})["level"] == "unknown"


_FAKE = """
import json, pathlib
PAGES = json.loads(pathlib.Path(__file__).with_name("pages.json").read_text())
def xspace_to_tool_data(files, tool, params):
    assert [pathlib.Path(file).name for file in files] == ["n1.xplane.pb", "n2.xplane.pb"], files
    assert pathlib.Path(files[0]).read_text() == "n1"
    pathlib.Path(files[0]).with_name("litter.pb").touch()
    return json.dumps(PAGES[tool]).encode(), "application/json"
"""


def test_answers_are_written_by_the_peers_python_and_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a peer that gives the same pages for every run."""
    run_dir = tmp_path / "jobs" / "j001" / "plugins" / "profile" / "2026_01_01"
    run_dir.mkdir(parents=True)
    for host in ("n1", "n2"):
        (run_dir / f"{host}.xplane.pb").write_text(host, "utf-8")
    (tmp_path / "jobs" / "j001" / "truth.json").write_text(
        json.dumps(truth("input", accepted=[["input"]])), "utf-8"
    )
    package = tmp_path / "path" / "xprof" / "convert"
    package.mkdir(parents=True)
    (package / "raw_to_tool_data.py").write_text(_FAKE, "utf-8")
    (package / "pages.json").write_text(json.dumps(pages(BOUND)), "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    monkeypatch.setenv("TPUPROF_PEER_PYTHON", sys.executable)
    monkeypatch.setattr("sys.argv", ["exam", "peer", str(tmp_path / "jobs")])
    assert exam.main() == 0
    assert {path.name for path in run_dir.iterdir()} == {"n1.xplane.pb", "n2.xplane.pb"}
    monkeypatch.setattr("sys.argv", ["exam", "score", str(tmp_path / "jobs"), "--answers", "peer.json"])
    assert exam.main() == 0
    assert "| input | 1 | 1 of 1 (100%) |" in capsys.readouterr().out


def test_it_imports_nothing_of_this_project() -> None:
    """The peer's Python has no NumPy extension of ours, and may be older."""
    code = (
        "import sys, tests.exam.peer; print([name for name in sys.modules if name.split('.')[0] in "
        "('tb_tpuprof', 'bench')])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=exam.ROOT
        ).stdout.strip()
        == "[]"
    )
