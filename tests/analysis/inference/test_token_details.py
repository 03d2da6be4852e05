"""Times of tokens at their limits: ids of numbers, requests without marks or gaps, models, several hosts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.inference.executions import LONGEST_PS
from tb_tpuprof.analysis.inference.names import Phase
from tb_tpuprof.analysis.inference.phases import phase_marks
from tb_tpuprof.analysis.inference.tokens import summed_tokens
from tests.analysis.inference.test_tokens import TWO_MODELS, tokens, us
from tests.builders import DrawnEvent, DrawnPlane, build, event


@pytest.mark.parametrize(
    "others",
    [
        [],
        # Requests without phases, whose ids come before, between and after the others.
        [
            event("request", 1, 90, request_id=1),
            event("request", 2, 90, request_id=6),
            event("request", 3, 90, request_id=99),
        ],
    ],
)
def test_ids_may_all_be_numbers(others: list[DrawnEvent]) -> None:
    found = tokens(
        [
            event("prefill", 10, 10, request_id=7),
            event("decode", 21, 4, request_id=7),
            event("prefill", 30, 5, request_id=3),
            event("decode", 50, 6, request_id=8),
            event("decode", 60, 9, request_id=8),
        ],
        others,
    )
    each = found.generations
    assert each.label == ("7", "3", "8")
    assert us(each.start_ps) == [10, 30, 50]
    assert us(each.end_ps) == [25, 35, 69]
    assert us(each.first_ps) == [10, 5, -1]
    assert each.n_tokens.tolist() == [2, 1, 2]
    # The second request has one token, so nothing between two.
    assert each.token_ps == pytest.approx([5e6, np.nan, 13e6], nan_ok=True)
    assert us(each.longest_ps) == [5, -1, 13]
    assert each.host.tolist() == [0, 0, 0]
    assert (us(found.first_ps), sorted(us(found.gap_ps))) == ([5, 10], [5, 13])


def test_tokens_at_the_same_moment_have_no_time_between_them() -> None:
    """A decode that ends with the prefill, on another thread; a prefill that starts with the first decode."""
    found = tokens(
        [event("prefill", 10, 10, request_id="a"), event("prefill", 40, 9, request_id="b")],
        [
            event("decode", 15, 5, request_id="a"),
            event("decode", 22, 6, request_id="a"),
            event("decode", 40, 12, request_id="b"),
        ],
    )
    assert sorted(us(found.gap_ps)) == [0, 3, 8]
    assert us(found.first_ps) == [10, 9]
    assert us(found.generations.longest_ps) == [8, 3]


def test_the_model_of_a_request_is_that_of_its_first_mark() -> None:
    found = tokens(
        [
            event("generate", 0, 30),
            event("prefill", 1, 10, request_id="a"),
            event("prefill", 14, 10, request_id="b"),
            event("answer", 40, 30),
            event("decode", 41, 5, request_id="a"),
            event("decode", 48, 5, request_id="a"),
            event("decode", 55, 5, request_id="b"),
            event("prefill", 61, 5, request_id="c"),
        ]
    )
    assert [found.models[model] for model in found.generations.model.tolist()] == [
        "generate",
        "generate",
        "answer",
    ]
    one = found.of_model("generate")
    assert (len(one.first_ps), sorted(us(one.gap_ps))) == (2, [7, 35, 36])
    assert len(found.of_model("answer").gap_ps) == 0
    assert len(found.of_model("answer").first_ps) == 1


def test_the_model_of_a_model_is_all_of_it() -> None:
    found = tokens(TWO_MODELS)
    one = found.of_model("answer")
    again = one.of_model("answer")
    assert (us(again.first_ps), us(again.gap_ps)) == (us(one.first_ps), us(one.gap_ps)) == ([11], [8, 10])
    assert len(one.of_model("generate")) == 0
    assert found.of_model("unknown") is found


def test_the_host_with_most_times_decides_and_models_keep_their_names() -> None:
    loop = tokens([event("prefill", 0, 9), event("decode", 10, 2), event("prefill", 20, 7)])
    request = tokens([event("generate", 0, 30), event("prefill", 1, 4), event("decode", 6, 3)])
    engine = tokens([event("step[DECODE bs=1]", 10 * i, 7) for i in range(6)])
    assert [len(one) for one in (loop, request, engine)] == [3, 2, 5]
    models = (*request.models, *loop.models, *engine.models)
    assert summed_tokens([request, loop, engine], models).by == "pass"
    chosen = summed_tokens([request, loop, request], models)
    assert (chosen.by, us(chosen.first_ps)) == ("step", [9, 7])
    unnamed = replace(request, first_model=np.array([-1]))
    several = summed_tokens([request, unnamed, request], ("answer", "chat", "generate"))
    assert several.first_model.tolist() == [2, -1, 2]
    assert several.gap_model.tolist() == [2, 2, 2]
    assert several.generations.host.tolist() == [0, 1, 2]
    assert several.generations.label == ("1", "1", "1")


@pytest.mark.parametrize(
    ("start", "length", "is_mark"),
    [
        (0, LONGEST_PS - 1, True),
        (0, LONGEST_PS, False),
        (LONGEST_PS - 1, 5, True),
        (LONGEST_PS, 5, False),
        (1 - LONGEST_PS, 5, True),
        (-LONGEST_PS, 5, False),
    ],
)
def test_marks_that_last_longer_than_any_job_are_damaged(start: int, length: int, is_mark: bool) -> None:
    lines = {"main": [DrawnEvent("generate", 0, 100)], "other": [DrawnEvent("prefill", start, length)]}
    found = phase_marks(build([DrawnPlane("/host:CPU", lines)]))
    assert found.start_ps.tolist() == [start] * is_mark
    assert found.end_ps.tolist() == [start + length] * is_mark


def test_marks_by_start_with_what_their_names_say() -> None:
    lines = {
        "a": [event("generate", 0, 90), event("prefill", 5, 20), event("decode", 30, 6)],
        "b": [event("decode", 2, 9), event("generate", 20, 50), event("prefill", 21, 3)],
    }
    found = phase_marks(build([DrawnPlane("/host:CPU", lines)]))
    assert us(found.start_ps) == [2, 5, 21, 30]
    assert found.phase.tolist() == [Phase.DECODE, Phase.PREFILL, Phase.PREFILL, Phase.DECODE]
    assert found.n_prefill.tolist() == found.n_decode.tolist() == [-1] * 4
    assert found.request.tolist() == [1, 0, 2, 0]  # the first is itself the second request
    names = [
        "execute_context_2(30)_generation_3(3)",
        "step[DECODE bs=7]",
        "step[EXTEND bs=4 toks=9]",
        "execute_new_5_cached_6",
    ]
    engine = {"engine": [event(name, 20 * i, 9) for i, name in enumerate(names)]}
    passes = phase_marks(build([DrawnPlane("/host:CPU", engine)]))
    assert passes.phase.tolist() == [Phase.MIXED, Phase.DECODE, Phase.PREFILL, Phase.MIXED]
    assert passes.n_prefill.tolist() == [2, 0, 4, 5]
    assert passes.n_decode.tolist() == [3, 7, 0, 6]
    assert passes.request.tolist() == [0, 1, 2, 3]


def test_ids_may_be_the_first_text_of_a_file() -> None:
    """The name of the host's plane is the first text, and so is the second request's id."""
    found = tokens(
        [
            event("prefill", 0, 5, request_id="a"),
            event("prefill", 6, 7, request_id="/host:CPU"),
            event("decode", 20, 4, request_id="/host:CPU"),
            event("decode", 30, 3, request_id="a"),
        ]
    )
    assert found.generations.label == ("a", "/host:CPU")
    assert us(found.generations.first_ps) == [5, 7]
    assert us(found.generations.longest_ps) == [28, 11]


def test_marks_outside_of_a_server_s_requests_have_no_model() -> None:
    """The server's requests are on another thread."""
    found = tokens(
        [
            event("prefill", 0, 5, request_id="a"),
            event("decode", 10, 4, request_id="a"),
            event("prefill", 20, 6, request_id="b"),
        ],
        [event("BatchingSessionRun", 0, 50, model_id="cat"), event("prefill", 5, 9, request_id="c")],
    )
    assert found.models == ("cat",)
    assert found.generations.label == ("a", "c", "b")
    assert found.generations.model.tolist() == [-1, 0, -1]
    assert found.gap_model.tolist() == [-1]
    assert sorted(found.first_model.tolist()) == [-1, -1, 0]
    assert len(found.of_model("cat")) == 1


def test_prompts_since_the_last_token_decide_who_may_be_new() -> None:
    """On each thread by itself: 2 + 1 prompts may be all of 3 sequences, not of 4; the first pass of a thread
    has no token before.
    """
    thread = [
        event("step[EXTEND bs=2 toks=9]", 0, 10),
        event("step[EXTEND bs=1 toks=9]", 12, 8),
        event("step[DECODE bs=3]", 22, 8),  # 10 after the second prefill
        event("step[EXTEND bs=2 toks=9]", 40, 5),
        event("step[EXTEND bs=1 toks=9]", 46, 5),
        event("step[DECODE bs=4]", 52, 8),  # 30 after the token
    ]
    found = tokens(thread, [event("step[EXTEND bs=9 toks=9]", 0, 3), event("step[DECODE bs=10]", 5, 3)])
    assert us(found.gap_ps) == [10, 30]
    assert us(found.first_ps) == [10, 8, 5, 5, 3]
    assert len(found.generations.token_ps) == len(found.generations) == 0
    alone = tokens([event("step[DECODE bs=2]", 0, 5)], thread)
    assert us(alone.gap_ps) == [10, 30]
