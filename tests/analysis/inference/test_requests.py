import numpy as np
import pytest

from tb_tpuprof.analysis.inference.executions import LONGEST_PS, executions, owners
from tb_tpuprof.analysis.inference.requests import has_requests, requests
from tb_tpuprof.trace.trace import Trace
from tests.analysis.inference.serving import server
from tests.builders import PS, DrawnEvent, DrawnPlane, build, drawing, event


def names(trace: Trace) -> list[str]:
    found = requests(trace)
    return [trace.strings[trace.metadata["name"][trace.events["metadata"][row]]] for row in found.row]


def host(**lines: list[DrawnEvent]) -> Trace:
    return build([DrawnPlane("/host:CPU", lines)])


def test_requests_to_a_server_and_its_batches() -> None:
    found = requests(server())
    assert (len(found), len(found.batch_row), found.unit, found.source) == (3, 2, "request", "a model server")


def test_sessions_are_requests_unless_something_trains() -> None:
    text = """
        main   [SessionRun     ]   [SessionRun   ]  [RunGraph ]
        main     <dense:MatMul>
    """
    assert names(drawing(text)) == ["SessionRun", "SessionRun", "RunGraph"]
    trained = drawing(text.replace("<dense:MatMul>", "<gradients/a:Add>"))
    assert names(trained) == []
    assert not has_requests(trained)


def test_a_session_within_a_request_or_a_batch_is_no_request() -> None:
    trace = drawing(
        """
        main     [ServingModelRun      ]
        main       [SessionRun    ]
        batches                             [ProcessBatch      ]
        batches                               [SessionRun   ]
        """
    )
    assert names(trace) == ["ServingModelRun"]


def test_the_session_that_a_batch_runs_on_another_thread_is_its_work() -> None:
    trace = host(
        caller=[event("BatchingSessionRun", 0, 50)],
        batches=[event("ProcessBatch", 10, 30, _pt=5, _p=3)],
        pool=[event("SessionRun", 12, 20, _ct=5, _c=3), event("SessionRun", 60, 9)],
    )
    assert names(trace) == ["BatchingSessionRun", "SessionRun"]
    assert trace.events["start_ps"][requests(trace).row].tolist() == [0, 60 * PS]


def test_batches_count_where_requests_were_not_traced() -> None:
    found = requests(drawing("batches   [ProcessBatch ]  [ProcessBatch  ]"))
    assert (len(found), found.unit, len(found.batch_row)) == (2, "batch", 0)


def test_passes_come_first_and_the_outermost_counts() -> None:
    outer = "execute_2_context_0(sq0)_generation_2(sq2)"
    trace = host(
        main=[
            event(outer, 0, 50),
            event("step[DECODE bs=2]", 5, 40),
            event("predict", 60, 10),
        ]
    )
    assert (names(trace), requests(trace).unit) == ([outer], "pass")


def test_one_batch_shows_that_there_is_a_server() -> None:
    """Its sessions are requests, although the host trains, too."""
    lines = {"main": [event("SessionRun", 0, 20), event("gradients/a:Add", 30, 5)]}
    assert names(host(**lines)) == []
    assert names(host(**lines, batches=[event("ProcessBatch", 50, 9)])) == ["SessionRun"]


def test_batches_without_requests_to_a_server_are_not_those_of_annotations() -> None:
    found = requests(host(main=[event("predict", 0, 50)], batches=[event("ProcessBatch", 10, 9)]))
    assert (found.source, len(found), len(found.batch_row)) == ("annotations", 1, 0)


def test_the_shortest_request_lasts_a_picosecond() -> None:
    trace = host(main=[DrawnEvent("ServingModelRun", 0, 1, {}), DrawnEvent("ServingModelRun", 9, 0, {})])
    assert len(requests(trace)) == 1


def test_annotations_within_one_another_and_without_duration() -> None:
    trace = host(
        main=[event("predict", 0, 50), event("decode_request", 5, 10), event("request", 60, 0)],
        other=[event("serve", 10, 20)],
    )
    assert names(trace) == ["predict", "serve"]
    assert requests(trace).source == "annotations"


def test_a_training_loop_may_decode_its_data() -> None:
    """Its predictions are requests, and without training steps `decode` is one."""
    lines = {
        "main": [event("train", 0, 90, step_num=1)],
        "data": [event("decode", 5, 10), event("decode", 20, 10)],
    }
    assert not has_requests(host(**lines))
    assert names(host(data=lines["data"])) == ["decode", "decode"]
    assert names(host(**lines, other=[event("predict 3", 95, 4)])) == ["predict 3"]


def test_annotations_on_a_device_are_not_requests() -> None:
    assert not has_requests(build([DrawnPlane("/device:GPU:0", {"stream": [event("predict", 0, 9)]})]))


def test_functions_that_predict_are_requests() -> None:
    trace = drawing(
        "main  [EagerLocalExecute: __inference_one_step_on_data_12]  [EagerLocalExecute: __inference_f_3]"
    )
    assert names(trace) == ["EagerLocalExecute: __inference_one_step_on_data_12"]
    assert requests(trace).source == "TensorFlow functions"


def test_batch_and_queue_of_each_request() -> None:
    found = executions(server())
    assert found.n_requests == 3
    assert found.batch_of.tolist() == [3, 3, 4]
    assert (found.queued_ps // PS).tolist() == [5, 15, 45]
    assert (found.start // PS).tolist() == [0, 10, 40, 30, 80]


def test_a_split_request_waits_for_its_last_batch() -> None:
    trace = host(
        caller=[
            event("BatchingSessionRun", 0, 90),
            event("ScheduleWithSplit", 1, 4, _pt=4, _p=2),
            event("ScheduleWithSplit", 6, 3, _pt=4, _p=1),
        ],
        batches=[event("ProcessBatch", 20, 10, _ct=4, _c=1), event("ProcessBatch", 50, 20, _ct=4, _c=2)],
    )
    found = executions(trace)
    assert found.batch_of.tolist() == [2]
    assert (found.queued_ps // PS).tolist() == [5]


@pytest.mark.parametrize(("start", "length"), [(95, 10), (0, 2), (90, 5), (0, 10)])
def test_a_batch_that_ran_at_another_time_is_not_the_request_s(start: int, length: int) -> None:
    trace = host(
        caller=[event("BatchingSessionRun", 10, 80), event("ScheduleWithoutSplit", 11, 2, _pt=4, _p=1)],
        batches=[event("ProcessBatch", start, length, _ct=4, _c=1)],
    )
    assert executions(trace).batch_of.tolist() == [-1]


def test_a_context_of_another_kind_ties_nothing() -> None:
    trace = host(
        caller=[event("BatchingSessionRun", 10, 80), event("ScheduleWithoutSplit", 11, 2, _pt=6, _p=1)],
        batches=[event("ProcessBatch", 30, 10, _ct=4, _c=1)],
    )
    assert executions(trace).batch_of.tolist() == [-1]


def test_damaged_times_are_left_out() -> None:
    events = [
        DrawnEvent("predict", 0, LONGEST_PS),
        DrawnEvent("predict", LONGEST_PS, 5),
        DrawnEvent("predict", 7, LONGEST_PS - 1),
        DrawnEvent("predict", LONGEST_PS - 1, 6),
    ]
    lines = {f"thread {i}": [one] for i, one in enumerate(events)}
    found = executions(build([DrawnPlane("/host:CPU", lines)]))
    assert found.start.tolist() == [7, LONGEST_PS - 1]
    assert np.diff([found.start, found.end], axis=0).tolist() == [[LONGEST_PS - 1, 6]]


def test_work_of_a_function_inside_a_request_belongs_to_the_request() -> None:
    """TensorFlow's function is the root of its group, not the event of the user's function around it."""
    trace = host(
        main=[
            event("predict", 0, 60),
            event("FunctionRun", 10, 5, _r=1, _pt=2, _p=7),
            event("train", 100, 90, _r=1, step_num=1),
            event("predict", 110, 30),
            event("FunctionRun", 115, 5, _r=1, _pt=2, _p=3),
            event("evaluate", 150, 5, _pt=2, _p=9),
        ],
        second=[event("predict", 5, 60), event("FunctionRun", 12, 5, _r=1, _pt=2, _p=8)],
        pool=[
            event("ExecutorState::Process", 30, 10, _ct=2, _c=8),
            event("dense:MatMul", 31, 5),
            event("ExecutorState::Process", 45, 10, _ct=2, _c=7),
            event("dense:MatMul", 46, 5),
            event("dense:MatMul", 150, 5),
            event("ExecutorState::Process", 160, 10, _ct=2, _c=9),
            event("dense:MatMul", 161, 5),
        ],
    )
    rows = np.flatnonzero(
        trace.events["metadata"] == trace.events["metadata"][first_named(trace, "dense:MatMul")]
    )
    assert owners(trace).of(rows).tolist() == [1, 0, -1, -1]


def first_named(trace: Trace, name: str) -> int:
    """The first event of a name."""
    return next(
        row
        for row in range(trace.n_events)
        if trace.strings[trace.metadata["name"][trace.events["metadata"][row]]] == name
    )
