"""Who waits for whom on drawn pipelines: cut calls, hand-overs, loops, validation, devices, and what is said
of each.
"""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.input.stage import slow_stage
from tb_tpuprof.analysis.tf_data.advice import position_text, waiting
from tb_tpuprof.analysis.tf_data.finding import by_weight, pipeline_verdict, sentence
from tb_tpuprof.analysis.tf_data.pipeline import Pipeline, call, parameters_of, pipelines
from tb_tpuprof.analysis.tf_data.source import source_of
from tb_tpuprof.trace.trace import Trace
from tests.analysis.tf_data.test_tf_data import MAP, PREFETCH, RANGE, ROOT, event, plane
from tests.builders import PS, DrawnEvent, build

FILTER = "Iterator::Root::Prefetch::BatchV2::Filter"
BATCH = "Iterator::Root::Prefetch::BatchV2"


def step(number: int, start: float, duration: float) -> DrawnEvent:
    return DrawnEvent("train", int(start * PS), int(duration * PS), {"_r": 1, "step_num": number})


def computing(start: float, duration: float) -> DrawnEvent:
    return event("MatMul:MatMul", start, duration)


def called(start: float, duration: float, element: int, consume_after: float) -> list[DrawnEvent]:
    """A call of a prefetched pipeline on the consumer's thread; the element is taken so long
    after it began.
    """
    return [
        event("IteratorGetNextOp::DoCompute", start, duration),
        event(ROOT, start, duration, id=1),
        event(PREFETCH, start, duration, id=2, parent_id=1),
        event("PrefetchConsume", start + consume_after, 0.1, element_id=element),
    ]


def made(start: float, duration: float, element: int) -> list[DrawnEvent]:
    """An element made ahead on the producer's thread."""
    return [
        event("PrefetchProduce", start, duration, element_id=element),
        event(MAP, start + 1, duration - 2, id=3, parent_id=2),
        event(RANGE, start + 2, 1, id=4, parent_id=3),
    ]


def steps_with(latency: float, consume_after: float, length: float, ready: bool) -> Trace:
    """Twelve steps with a call each: the element ready long before, or made until it is taken."""
    consumer: list[DrawnEvent] = []
    producer: list[DrawnEvent] = []
    for i in range(12):
        start = 1000 + i * (length + 20)
        consumer += [
            step(i, start, length),
            *called(start, latency, i, consume_after),
            computing(start + latency, length - latency),
        ]
        end = start - 30 if ready else start + consume_after - 0.5
        producer += made(end - length * 0.6, length * 0.6, i)
    return build([plane(consumer=consumer, producer=producer)])


def only(trace: Trace) -> Pipeline:
    (found,) = pipelines(trace)
    return found


def said(trace: Trace) -> str:
    pipeline = only(trace)
    return sentence(pipeline, pipeline_verdict(trace, pipeline), "h", 1e12)


def cut_and_whole() -> Trace:
    """Three calls of other lengths; the first and longest began before the capture, so that nothing that was
    made for it is in it.
    """
    consumer = [
        *called(0, 300, 1, 299),
        *called(400, 100, 2, 99),
        *called(600, 200, 3, 199),
        *called(900, 150, 4, 149),
    ]
    producer = []
    for start, duration, element in ((402, 95, 2), (602, 195, 3), (902, 145, 4)):
        producer.append(event("PrefetchProduce", start, duration, element_id=element))
        producer.append(event(BATCH, start + 1, duration - 2, id=3, parent_id=2))
        producer += [
            event(FILTER, start + 2 + i * (duration - 4) / 4, (duration - 4) / 4 - 1, id=4, parent_id=3)
            for i in range(4)
        ]
    return build([plane(consumer=consumer, producer=producer)])


def test_the_page_opens_on_a_complete_call_of_median_length_and_rank_1_is_complete() -> None:
    pipeline = only(cut_and_whole())
    ranked = [int(x) // PS for x in pipeline.duration_ps[pipeline.order]]
    assert ranked == [200, 150, 100, 300]
    assert pipeline.is_complete[pipeline.order].tolist() == [True, True, True, False]
    assert pipeline.typical_rank == 2


def test_the_drawing_marks_the_stage_that_the_sentence_names() -> None:
    trace = cut_and_whole()
    pipeline = only(trace)
    stage = pipeline.bottleneck_stage
    assert stage is not None
    assert stage.name == "Filter"
    assert "its bottleneck is `Filter`" in said(trace)
    for rank in (1, 2, 3):
        shown = call(trace, pipeline, rank)
        assert shown.nodes[shown.bottleneck].long_name == stage.long_name
    assert call(trace, pipeline, 4).bottleneck == -1


def test_work_per_call_is_of_the_calls_that_are_complete() -> None:
    """Four runs of the filter per batch, in three calls: a cut fourth call does not dilute them."""
    pipeline = only(cut_and_whole())
    stage = pipeline.bottleneck_stage
    assert stage is not None
    assert pipeline.work_ps(stage) == pytest.approx((95 + 195 + 145 - 3 * 8) / 3 * PS)


def test_the_work_of_a_function_in_several_pieces_is_all_of_it() -> None:
    """The executor worked twice for one run: what lies between is the function's, what lies before it is
    waiting for a thread.
    """
    pool = [
        event("ExecutorState::Process", 1005, 200, id=50),
        event("ExecutorState::Process", 9000, 900, id=50),
    ]
    caller = [
        event(ROOT, 0, 10000, id=1), event("Iterator::Root::Filter", 1, 9995, id=2, parent_id=1),
        event("InstantiatedCapturedFunction::RunWithBorrowedArgs", 5, 9900, id=50),
    ]  # fmt: skip
    pipeline = only(build([plane(caller=caller, pool=pool)]))
    times = next(one.times for one in pipeline.stages if one.name == "Filter")
    assert times.work_ps == (9995 - 1000 + 20) * PS


def test_waking_up_after_the_element_was_there_is_no_waiting_for_input() -> None:
    trace = steps_with(latency=100, consume_after=1, length=500, ready=True)
    found = waiting(trace, only(trace))
    assert found.severity == 0
    assert found.fraction == pytest.approx(0.002, abs=0.001)
    assert found.woken == pytest.approx(0.198, abs=0.002)
    text = said(trace)
    assert text.startswith("tf.data keeps up")
    assert "Elements were ready: 99.0 µs of each call" in text
    assert "not traced" not in text


def test_waiting_until_the_element_is_made_is_waiting_for_input() -> None:
    trace = steps_with(latency=100, consume_after=99, length=500, ready=False)
    found = waiting(trace, only(trace))
    assert found.severity == 1
    assert found.fraction == pytest.approx(0.198, abs=0.002)


def test_a_caller_that_waits_for_a_processor_is_told_so() -> None:
    trace = steps_with(latency=2000, consume_after=1, length=8000, ready=True)
    pipeline = only(trace)
    found = pipeline_verdict(trace, pipeline)
    assert found.waiting.is_contended
    assert found.level == "warn"
    assert "for a processor" in sentence(pipeline, found, "h", 8e9)
    assert "processors" in found.advice[0]
    assert slow_stage(trace) is None


def test_a_call_longer_than_a_fifth_of_a_step_is_never_called_hidden() -> None:
    trace = steps_with(latency=100, consume_after=1, length=500, ready=True)
    pipeline = only(trace)
    found = pipeline_verdict(trace, pipeline)
    assert "hidden" not in sentence(pipeline, found, "h", 400 * PS)


def test_calls_that_take_more_of_the_steps_than_these_count_as_input_win() -> None:
    """The step's own class of the call is missing (no IteratorGetNext was traced): the calls' time is what is
    known.
    """
    main: list[DrawnEvent] = []
    for i in range(10):
        start = i * 1000
        main += [
            step(i, start, 1000),
            event(ROOT, start, 800, id=1),
            event("Iterator::Root::Map", start, 790, id=2, parent_id=1),
        ]
        main.append(computing(start + 800, 200))
    trace = build([plane(main=main)])
    found = waiting(trace, only(trace))
    assert found.fraction == pytest.approx(0.8, abs=0.01)
    assert found.severity == 2


def test_more_work_than_the_call_is_explained() -> None:
    consumer, producer = [], []
    for i in range(6):
        start = 1000 * i + 1000
        consumer += [*called(start, 300, i, 299)]
        producer += made(start - 500, 798, i)
    text = said(build([plane(consumer=consumer, producer=producer)]))
    assert "part of which ran ahead of the call" in text


def test_one_call_makes_no_rate() -> None:
    consumer = [step(0, 0, 2000), *called(10, 1000, 1, 999), computing(1100, 500)]
    trace = build([plane(consumer=consumer, producer=made(12, 990, 1))])
    pipeline = only(trace)
    assert pipeline.wait_fraction is None
    found = pipeline_verdict(trace, pipeline)
    assert (found.level, found.waiting.fraction) == ("unknown", None)
    assert "a rate needs at least two calls" in said(trace)


def with_validation() -> Trace:
    """Training steps with quick calls, then a validation outside of any step with slow ones."""
    main: list[DrawnEvent] = []
    for i in range(8):
        start = i * 1000
        main += [
            step(i, start, 950),
            event("IteratorGetNextOp::DoCompute", start, 20),
            event(ROOT, start, 20, id=1),
        ]
        main += [event("Iterator::Root::Map", start, 19, id=2, parent_id=1), computing(start + 30, 900)]
    for i in range(6):
        start = 9000 + i * 1000
        main += [
            event(ROOT, start, 900, id=7),
            event("Iterator::Root::BatchV2", start, 890, id=8, parent_id=7),
        ]
    return build([plane(main=main)])


def test_a_validation_outside_of_the_steps_neither_comes_first_nor_colours_the_page() -> None:
    trace = with_validation()
    training, validation = by_weight(trace)
    assert (len(training.calls), len(validation.calls)) == (8, 6)
    assert validation.max_ps > training.max_ps
    assert pipeline_verdict(trace, training).level == "good"
    stage = slow_stage(trace)  # what the overview names
    assert stage is None or stage.pipeline == training.name
    found = pipeline_verdict(trace, validation)
    assert (found.level, found.waiting.of) == ("unknown", "outside")
    assert "runs outside the steps" in sentence(validation, found, "h", None)


def test_calls_between_annotated_steps_are_the_training_s() -> None:
    main: list[DrawnEvent] = []
    for i in range(8):
        start = i * 1000
        main += [event(ROOT, start, 500, id=1), event("Iterator::Root::Map", start, 490, id=2, parent_id=1)]
        main += [step(i, start + 510, 400), computing(start + 515, 390)]
    trace = build([plane(main=main)])
    found = waiting(trace, only(trace))
    # Whether the time between two steps belongs to one of them or not: the training waits for half of its
    # time.
    assert found.severity == 2
    assert found.place in ("inside", "between")
    assert found.fraction == pytest.approx(0.5, abs=0.06)


def test_a_loop_inside_of_a_tf_function_has_a_pipeline_and_its_body_is_no_bottleneck() -> None:
    root = "ReduceIterator::Root"
    scan, take = f"{root}::Scan", f"{root}::Scan::FiniteTake"
    main: list[DrawnEvent] = [event("MakeIterator::RootDataset", 0, 5)]
    for loop in range(2):
        for i in range(3):
            start, first = 10 + loop * 1000 + i * 300, 100 * loop
            main += [
                event(root, start, 280, id=first + 1),
                event(scan, start, 279, id=first + 2, parent_id=first + 1),
                event(take, start, 80, id=first + 3, parent_id=first + 2),
                event(f"{take}::Map", start, 70, id=first + 4, parent_id=first + 3),
            ]
    trace = build([plane(main=main)])
    pipeline = only(trace)
    assert len(pipeline.calls) == 6
    stage = pipeline.bottleneck_stage
    assert stage is not None
    assert stage.name == "Map"
    assert set(pipeline.waited_ps.tolist()) == {80 * PS}
    assert "inside a `tf.function`" in pipeline_verdict(trace, pipeline).estimates[0].note


def test_device_pipelines_with_a_root_are_known_by_their_generator() -> None:
    main = [
        event("Iterator::Root", 0, 100, id=5),
        event("Iterator::Root::Prefetch", 1, 98, id=6, parent_id=5),
        event("Iterator::Root", 200, 100, id=9),
        event("Iterator::Root::Prefetch", 201, 90, id=10, parent_id=9),
    ]
    other = [
        event("Iterator::Root::Prefetch::Generator", 2, 90, id=7, parent_id=6),
        event("Iterator::Root::Prefetch::FlatMap[0]::Generator", 202, 80, id=11, parent_id=10),
    ]
    trace = build([plane(main=main, other=other)])
    assert sorted(one.name for one in pipelines(trace)) == ["Device:0", "Host:0"]
    device = next(one for one in pipelines(trace) if one.kind == "Device")
    assert pipeline_verdict(trace, device).estimates[0].kind == "none"


def two_maps(frames: bool) -> Trace:
    """Two maps of one pipeline; the Python tracer saw the slow one's function, below the framework's."""
    outer, inner = "Iterator::Root::Map", "Iterator::Root::Map::Map"
    main, pool = [], []
    for i in range(3):
        start = i * 1000
        main += [
            event(ROOT, start, 900, id=1),
            event(outer, start, 899, id=2, parent_id=1),
            event(inner, start, 800, id=3, parent_id=2),
            event(f"{inner}::Shuffle", start, 5, id=4, parent_id=3),
            event("InstantiatedCapturedFunction::Run", start + 10, 780, id=50 + i),
        ]
        pool.append(event("ExecutorState::Process", start + 20, 760, id=50 + i))
        if frames:
            pool += [
                event("$script_ops.py:140 __call__", start + 30, 740),
                event("$train.py:31 augment", start + 40, 700),
            ]
            pool.append(event("$other.py:5 elsewhere", start + 850, 20))
    return build([plane(main=main, pool=pool)])


def test_two_maps_are_told_apart_by_the_source_line_or_by_their_neighbours() -> None:
    trace = two_maps(frames=True)
    assert source_of(trace, only(trace)) == "`augment` (train.py:31)"
    assert pipeline_verdict(trace, only(trace)).stage == "`Map` (`augment` (train.py:31))"
    trace = two_maps(frames=False)
    pipeline = only(trace)
    assert source_of(trace, pipeline) == ""
    assert (
        position_text(pipeline.stages, pipeline.bottleneck)
        == "the first of 2 `map` stages from the source, between `shuffle` and `map`"
    )


def test_parameters_are_asked_for_until_a_call_tells_them() -> None:
    trace = cut_and_whole()
    told = iter([[("parallelism", "unavailable")], [("parallelism", "4")], *([[("parallelism", "8")]] * 50)])
    trace.source.event_stats = lambda _trace, _event: next(told)  # type: ignore[method-assign]
    assert parameters_of(trace, only(trace))[ROOT]["parallelism"] == "4"
