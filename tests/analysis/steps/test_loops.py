"""Steps beside TensorFlow's loops: annotations win over loops inside, loops that fetch their own data have an
iteration a step.
"""

from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.steps import steps
from tests.builders import PS, DrawnEvent, DrawnPlane, build

EXECUTOR = "ExecutorState::Process"


def event(name: str, start: int, time: int, **stats: int) -> DrawnEvent:
    return DrawnEvent(name, start * PS, time * PS, stats)


def ps(found: Steps, klass: TimeClass) -> list[float]:
    return (found.class_ps[:, klass] / PS).tolist()


def loop_on_a_pool(run: int, start: int, n: int, every: int, fetches: int = 0) -> list[DrawnEvent]:
    """A run's loop: each iteration fetches (for so long) and computes."""
    events = []
    for i in range(n):
        at = start + i * every
        events.append(event(EXECUTOR, at, every, id=run, iter_num=i, _ct=1, _c=run))
        if fetches:
            events.append(event("IteratorGetNextOp::DoCompute", at + 1, fetches, id=run, iter_num=i))
        events.append(event("MatMul:MatMul", at + 1 + fetches, every - 2 - fetches))
    return events


def test_annotated_steps_win_over_loops_inside() -> None:
    main, pool = [], []
    for i in range(3):
        main += [
            event("train", 100 * i, 99, _r=1, step_num=i),
            event("FunctionRun", 100 * i + 2, 3, _r=1, _pt=1, _p=50 + i),
        ]
        pool += loop_on_a_pool(50 + i, 100 * i + 10, 3 + i, 15)
    found = steps(build([DrawnPlane("/host:CPU", {"main": main, "pool": pool})]))
    assert found.name == ("train 0", "train 1", "train 2")
    assert (found.duration_ps / PS).tolist() == [99, 99, 99]
    # Within the steps the executor runs 15 an iteration, of which there are 3, 4 and 5.
    assert ps(found, TimeClass.HOST_COMPUTE) == [45, 60, 75]


def test_without_annotations_each_fetch_of_a_run_with_several_steps_is_a_step() -> None:
    main, pool = [], []
    for i in range(2):
        main.append(event("FunctionRun", 100 * i + 1, 3, _r=1, _pt=1, _p=50 + i))
        pool += loop_on_a_pool(50 + i, 100 * i + 10, 2, 45, fetches=30)
    found = steps(build([DrawnPlane("/host:CPU", {"main": main, "pool": pool})]))
    assert found.source == "iteration"
    assert (found.start_ps / PS).tolist() == [11, 56, 111, 156]
    assert (found.duration_ps / PS).tolist() == [45, 55, 45, 44]
    assert ps(found, TimeClass.HOST_WAIT_INPUT) == [30, 30, 30, 30]


def test_a_loop_in_a_function_that_fetches_nothing_makes_no_steps_of_iterations() -> None:
    main, pool = [], []
    for i in range(3):
        main.append(event("FunctionRun", 100 * i + 1, 3, _r=1, _pt=1, _p=50 + i))
        pool += loop_on_a_pool(50 + i, 100 * i + 10, 2, 40)
    found = steps(build([DrawnPlane("/host:CPU", {"main": main, "pool": pool})]))
    assert (found.source, len(found)) == ("function", 3)
    assert (found.duration_ps / PS).tolist() == [100, 100, 89]


def test_a_dataset_that_runs_a_loop_s_body_has_a_step_an_element() -> None:
    events = []
    for i in range(3):
        at = 100 * i
        events += [
            event("ReduceIterator::Root::Prefetch::Scan", at, 98),
            event("ReduceIterator::Root::Prefetch::Scan::Map", at + 1, 40 + i),
            event("InstantiatedCapturedFunction::Run", at + 50, 47),
        ]
    found = steps(build([DrawnPlane("/host:CPU", {"tf_data_prefetch": events})]))
    assert found.source == "iteration"
    assert (found.duration_ps / PS).tolist() == [100, 100, 98]
    assert ps(found, TimeClass.HOST_WAIT_INPUT) == [40, 41, 42]
    assert ps(found, TimeClass.HOST_COMPUTE) == [58, 57, 56]


def test_fetches_between_runs_of_a_function_are_waited_for() -> None:
    """The commonest custom loop: `step(next(iterator))` without a trace of its own."""
    main, pool = [], []
    for i in range(3):
        at = 100 * i
        main += [
            event("EagerExecute", at, 44), event("IteratorGetNextOp::DoCompute", at + 1, 40 + i),
            event("one_step", at + 45, 50), event("TFE_Py_ExecuteCancelable", at + 46, 48),
            event("FunctionRun", at + 47, 2, _r=1, _pt=1, _p=i),
        ]  # fmt: skip
        pool.append(event(EXECUTOR, at + 50, 40, _ct=1, _c=i, id=i))
    trace = build([DrawnPlane("/host:CPU", {"main": main, "pool": pool})])
    found = steps(trace)
    assert (found.source, (found.duration_ps / PS).tolist()) == ("function", [100, 100, 43])
    assert ps(found, TimeClass.HOST_WAIT_INPUT) == [41, 42, 0]
    assert groups(trace).named_roots.size == 0
