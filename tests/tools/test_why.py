"""The diagnosis of one step: its name, its duration compared with the median, and the cause of the
difference.
"""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.session import Session
from tb_tpuprof.tools.findings_tables import _MEANINGS, cause_color
from tb_tpuprof.tools.overview_page.view import TOOL
from tb_tpuprof.tools.why import against_median, diagnosis, place_of, title_of
from tests.builders import drawing
from tests.golden_files import ROOT, demo_runs
from tests.payload_columns import table
from tests.tools.drawn_session import session_of

MS = 10**9
STEPS = [{"_r": 1, "step_num": number} for number in (4, 5, 41)]
# Step 41 waits as long as the others, and computes four times as long.
SLOW_BY_COMPUTING = """
main   [train                     ] [train                     ] [train                                                    ]
main     [IteratorGetNext][Mul:Mul]   [IteratorGetNext][Mul:Mul]   [IteratorGetNext][Mul:Mul                               ]
"""


@pytest.fixture(scope="module")
def jax_train() -> Session:
    return Session(str(demo_runs()["jax_train"]), cache=False)


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [
        (60.2, "3.1 times the median of 19.4 ms"),
        (388, "20 times the median of 19.4 ms"),
        (24, "23.7% longer than the median of 19.4 ms"),
        (19.9, "about as long as the median of 19.4 ms"),
        (18.5, "about as long as the median of 19.4 ms"),
        (9.7, "50.0% shorter than the median of 19.4 ms"),
    ],
)
def test_a_step_compared_with_the_median(time_ms: float, text: str) -> None:
    assert against_median(time_ms * MS, 19.4 * MS) == text


def test_steps_are_found_by_name_and_by_number() -> None:
    names = ("train 4", "eval 41", "train 41")
    assert [place_of(names, step) for step in ("train 41", "41", "4", "1", "train")] == [2, 1, 0, None, None]
    assert [title_of(name) for name in ("train 41", "7", "step 3")] == ["Step train 41", "Step 7", "step 3"]


def test_the_difference_is_named_where_it_is_another_than_the_finding() -> None:
    result = diagnosis(session_of(drawing(SLOW_BY_COMPUTING, {"train": STEPS})), step="41")
    assert result.text == (
        "Step train 41 took 59.0 µs, 2.1 times the median of 28.0 µs; 31.0 µs of the difference is compute. "
        "Highly input-bound: the step waits 17.0 µs (28.8%) for data."
    )
    assert result.findings[0].sentence == "The step waits 17.0 µs (28.8%) for data."
    assert result.n_steps == 1


def test_a_step_like_the_others_says_so() -> None:
    result = diagnosis(session_of(drawing(SLOW_BY_COMPUTING, {"train": STEPS})), step="train 4")
    assert result.text.startswith(
        "Step train 4 took 28.0 µs, about as long as the median of 28.0 µs. Highly input-bound: the step "
        "waits"
    )


def test_the_only_step_has_no_median() -> None:
    only = drawing("main [train          ]\nmain   <Mul         >", {"train": [{"_r": 1, "step_num": 4}]})
    assert diagnosis(session_of(only), step="4").text.startswith(
        "Step train 4 took 17.0 µs and is the only step. "
    )


def test_a_step_that_some_hosts_have_names_them() -> None:
    second_host = drawing(
        SLOW_BY_COMPUTING, {"train": [{"_r": 1, "step_num": number} for number in (4, 5, 6)]}
    )
    both = session_of(drawing(SLOW_BY_COMPUTING, {"train": STEPS}), second_host)
    assert diagnosis(both, step="41").text.startswith("Step train 41 on `host` took 59.0 µs, 2.1 times")
    assert diagnosis(both, step="4").text.startswith("Step train 4 took 28.0 µs, ")


def test_a_step_that_is_not_there_names_those_that_are(jax_train: Session) -> None:
    with pytest.raises(BadParameter) as raised:
        diagnosis(jax_train, step="train 99")
    assert "train 1 … train 18" in raised.value.remedy


def test_the_overview_of_one_step(jax_train: Session) -> None:
    all_steps, one_step = TOOL.run(jax_train, None, {}), TOOL.run(jax_train, None, {"step": "13"})
    assert all_steps.verdict is not None
    assert one_step.verdict is not None
    assert all_steps.verdict.next[1].tool == "overview_page"
    assert all_steps.verdict.next[1].params == {"step": "train 13"}
    assert (
        all_steps.verdict.next[1].text == "See why step train 13 took 71.1% longer than the median of 7.20 ms"
    )
    assert one_step.verdict.text.startswith(
        "Step train 13 took 12.3 ms, 71.1% longer than the median of 7.20 ms; "
    )
    assert one_step.verdict.next[1].text == "Look at step train 13 in the trace viewer"
    assert one_step.verdict.next[1].params == all_steps.verdict.next[2].params
    assert one_step.tables["causes"].note == "every moment has one cause; of one step"
    assert len(one_step.verdict.details) == 2, "the reason and the fix, nothing about the other steps"
    assert sum(table(one_step, "causes")["time_ps"]) == pytest.approx(12_327_268_000)  # type: ignore[arg-type]
    assert one_step.tables["steps"].n_rows == all_steps.tables["steps"].n_rows == 18


def test_each_cause_has_a_color_and_the_meaning_that_the_documentation_gives_it() -> None:
    text = (ROOT / "docs" / "causes" / "README.md").read_text("utf-8")
    for cause in Cause:
        assert f"({cause.value}.md) | {_MEANINGS[cause]} |" in text
        assert (ROOT / "docs" / "causes" / f"{cause.value}.md").is_file()
    colors = [cause_color(cause, "GPU") for cause in Cause]
    assert len(set(colors)) == len(colors)
    assert cause_color(Cause.COMPUTE, "CPU") == "host"
