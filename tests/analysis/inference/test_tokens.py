"""Times of tokens: by request, by pass, and where none may be stated."""

import numpy as np
import pytest

from tb_tpuprof.analysis.inference.tokens import Tokens, host_tokens, summed_tokens
from tests.builders import PS, DrawnEvent, DrawnPlane, build, event

TWO_MODELS = [
    event("generate", 0, 30),
    event("prefill", 1, 4),
    event("decode", 6, 3),
    event("answer", 40, 30),
    event("prefill", 42, 9),
    event("decode", 53, 6),
    event("decode", 60, 9),
]


def tokens(*threads: list[DrawnEvent], **planes: list[DrawnEvent]) -> Tokens:
    lines = {f"thread {i}": events for i, events in enumerate(threads)}
    devices = [DrawnPlane("/device:GPU:0", {"stream": events}) for events in planes.values()]
    return host_tokens(build([DrawnPlane("/host:CPU", lines), *devices]))


def us(values: np.ndarray) -> list[float]:
    return [value if value < 0 else value / PS for value in values.tolist()]


def test_requests_are_the_events_around_their_phases() -> None:
    found = tokens(
        [
            event("generate", 0, 60),
            event("prefill", 2, 20),
            event("decode", 24, 6),
            event("decode", 32, 5),
            event("decode", 40, 15),
            event("generate", 70, 40),
            event("prefill", 75, 10),
            event("prefill", 86, 2),
            event("decode", 90, 5),
            event("generate", 200, 10),
            event("decode", 202, 3),
            event("decode", 206, 3),
        ]
    )
    assert found.by == "request"
    # The third request began before the trace: its first token and what precedes its first decode are
    # unknown.
    assert us(found.first_ps) == [22, 18]
    assert us(found.gap_ps) == [8, 7, 18, 7, 4]
    each = found.generations
    assert each.label == ("1", "2", "3")
    assert us(each.first_ps) == [22, 18, -1]
    assert each.n_tokens.tolist() == [4, 2, 2]
    assert us(each.token_ps) == [11, 7, 4]
    assert us(each.longest_ps) == [18, 7, 4]
    assert us(each.end_ps) == [55, 95, 209]


def test_requests_are_told_apart_by_their_ids() -> None:
    found = tokens(
        [
            event("prefill", 10, 10, request_id="a"),
            event("prefill", 21, 4, request_id="b"),
            event("decode", 30, 2, request_id="a"),
            event("decode", 33, 4, request_id="b"),
            event("decode", 40, 1, request_id="a"),
            event("decode", 50, 9, request_id=7),
            event("decode", 60, 3, request_id=7),
            event("decode", 70, 3),
        ],
        # A client's request, from its arrival on.
        [event("request", 3, 44, request_id="b")],
    )
    assert found.by == "request"
    each = found.generations
    assert each.label == ("b", "a", "7")
    assert us(each.start_ps) == [3, 10, 50]
    assert us(each.first_ps) == [22, 10, -1]
    assert each.n_tokens.tolist() == [2, 3, 2]
    assert us(each.longest_ps) == [12, 12, 4]
    assert us(each.token_ps) == [12, 10.5, 4]
    assert sorted(us(found.gap_ps)) == [4, 9, 12, 12]


def test_a_decode_ends_with_its_work_on_the_device() -> None:
    launches = [
        event("cudaLaunchKernel", 24, 1, correlation_id=1),
        event("cudaLaunchKernel", 31, 1, correlation_id=2),
    ]
    found = tokens(
        [
            event("generate", 0, 50),
            event("prefill", 2, 10),
            event("decode", 23, 3),
            launches[0],
            event("decode", 30, 3),
            launches[1],
        ],
        gpu=[event("gemv", 26, 9, correlation_id=1), event("gemv", 36, 6, correlation_id=2)],
    )
    assert us(found.gap_ps) == [35 - 12, 42 - 35]


def test_a_prefill_ends_with_its_work_on_the_device() -> None:
    """The first mark of the trace, too; a copy to the device after it is not its work."""
    launches = [event("cudaLaunchKernel", at, 1, correlation_id=i + 1) for i, at in enumerate((4, 6, 25))]
    found = tokens(
        [event("prefill", 2, 10), *launches[:2], event("decode", 23, 3), launches[2]],
        gpu=[
            event("gemv", 14, 9, correlation_id=1),
            event("MemcpyHToD", 24, 20, correlation_id=2),
            event("gemv", 45, 2, correlation_id=3),
        ],
    )
    assert us(found.first_ps) == [23 - 2]
    assert us(found.gap_ps) == [47 - 23]


def test_passes_follow_one_another_on_their_thread() -> None:
    found = tokens(
        [
            event("step[DECODE bs=3]", 0, 10),
            event("step[DECODE bs=3]", 12, 8),
            event("step[EXTEND bs=2 toks=90]", 22, 18),
            # Two of five sequences may be new: the others had a token at 20.
            event("step[DECODE bs=5]", 42, 8),
            event("step[EXTEND bs=2 toks=9]", 60, 30),
            # All may be new.
            event("step[DECODE bs=2]", 95, 5),
            event("execute_context_1(7)_generation_2(2)", 110, 20),
            event("step[TARGET_VERIFY bs=3]", 140, 5),
        ],
        [event("step[DECODE bs=1]", 0, 7), event("step[DECODE bs=1]", 10, 9)],
    )
    assert found.by == "pass"
    assert us(found.first_ps) == [18, 30, 20]
    assert us(found.gap_ps) == [10, 30, 10, 30, 15, 12]
    assert len(found.generations) == 0


def test_annotations_without_requests_are_steps() -> None:
    found = tokens(
        [
            event("prefill", 0, 9),
            event("decode", 10, 2),
            event("decode", 15, 4),
            event("prefill", 40, 7),
            event("decode", 50, 3),
        ]
    )
    assert found.by == "step"
    assert (us(found.first_ps), us(found.gap_ps)) == ([9, 7], [3, 7, 6])


@pytest.mark.parametrize(
    "events",
    [
        [event("decode", 0, 5), event("decode", 10, 5)],
        [event("predict", 0, 20), event("decode", 2, 5), event("predict", 30, 20), event("decode", 32, 5)],
        [event("train_step", 0, 20), event("decode", 2, 5)],
        [event("train_step", 0, 20), event("prefill", 2, 5), event("decode", 9, 5)],
        [event("predict", 0, 20)],
    ],
)
def test_data_may_be_decoded_too(events: list[DrawnEvent]) -> None:
    assert len(tokens(events)) == 0


def test_times_of_one_model_and_of_several_hosts() -> None:
    one = tokens(TWO_MODELS)
    other = tokens([event("answer", 0, 30), event("prefill", 5, 6)])
    assert us(one.of_model("answer").first_ps) == [11]
    assert us(one.of_model("answer").gap_ps) == [8, 10]
    assert one.of_model("answer").generations.label == ("2",)
    assert one.of_model("") is one
    both = summed_tokens([other, one], ("answer", "generate"))
    assert us(both.of_model("answer").first_ps) == [11, 11]
    assert us(both.of_model("generate").gap_ps) == [4]
    assert both.generations.host.tolist() == [0, 1, 1]
    passes = tokens([event("step[DECODE bs=1]", 0, 7), event("step[DECODE bs=1]", 10, 9)])
    assert summed_tokens([passes, one], ("answer", "generate")).by == "request"
