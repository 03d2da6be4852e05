"""Random nested traces for properties that any trace has: steps of unlike length on one thread, others next
to it, a GPU or none.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tb_tpuprof.trace.trace import Trace
from tests.analysis.diagnosis.drawn import LEGEND
from tests.builders import PS, DrawnEvent, DrawnPlane, build

_NAMES = [
    *LEGEND.values(),
    "$train.py:3 main",
    "$data_adapter.py:9 go",
    "$callback_list.py:5 on_batch_end",
    "$queue.py:154 get",
    "",
    "$queue.py:122 put",
    "IteratorGetNext",
    "EagerLocalExecute: Mul",
    "load_batch",
    "anneal",
    "DevicePut",
    "MemcpyH2D",
    "$",
    "$array.py:10 __float__",
    "PyFunc:PyFunc",
    "tf.function-graph_building",
    "$pjit.py:7 _infer_params",
    "cudaLaunchKernel",
    "ThreadpoolListener::Record",
    "$<string>:1 <lambda>",
]


@st.composite
def traces(draw: st.DrawFn, most_steps: int = 12) -> Trace:
    """A trace."""
    lengths = draw(st.lists(st.integers(1, 40), min_size=1, max_size=most_steps))
    gap = draw(st.sampled_from([0, 0, 1, 30]))
    main: list[DrawnEvent] = []
    at = draw(st.integers(0, 3))
    name = draw(st.sampled_from(["train", "train", "epoch"]))
    for number, length in enumerate(lengths):
        main.append(DrawnEvent(name, at * PS, length * PS, {"_r": 1, "step_num": number}))
        main += _nested(draw, at, at + length, 3)
        at += length + gap
    lines = {"main": main}
    for thread in range(draw(st.integers(0, 2))):
        lines[draw(st.sampled_from(["pool", "tf_pool"])) + str(thread)] = _nested(draw, 0, at, 3)
    if draw(st.booleans()):
        lines["main"] += [DrawnEvent("$loop.py:90 main", 0, at * PS)]
    planes = [DrawnPlane("/host:CPU", {line: _ordered(events) for line, events in lines.items()})]
    if draw(st.integers(0, 3)) == 0:
        planes.append(DrawnPlane("/device:GPU:0", {"stream": _kernels(draw, main, at)}))
    return build(planes)


def _ordered(events: list[DrawnEvent]) -> list[DrawnEvent]:
    return sorted(events, key=lambda event: (event.start_ps, -event.duration_ps))


def _nested(draw: st.DrawFn, first: int, last: int, depth: int) -> list[DrawnEvent]:
    """Events within a span, each with some inside."""
    events: list[DrawnEvent] = []
    at = first
    for _ in range(draw(st.integers(0, 3))):
        if at >= last:
            break
        start = draw(st.integers(at, last))
        end = draw(st.integers(start, last))
        events.append(DrawnEvent(draw(st.sampled_from(_NAMES)), start * PS, (end - start) * PS))
        if depth:
            events += _nested(draw, start, end, depth - 1)
        at = end
    return events


def _kernels(draw: st.DrawFn, main: list[DrawnEvent], last: int) -> list[DrawnEvent]:
    """Kernels that some of the thread's events launched."""
    kernels = []
    for number, event in enumerate(main):
        if event.name != "train" and draw(st.booleans()):
            event.stats = {**event.stats, "correlation_id": number + 1}
            start = draw(st.integers(event.start_ps // PS, last + 5))
            length = draw(st.integers(1, 20))
            name = draw(st.sampled_from(["gemm", "half_gemm", "MemcpyHtoD", "ncclDevKernel_AllReduce"]))
            kernels.append(DrawnEvent(name, start * PS, length * PS, {"correlation_id": number + 1}))
    return _ordered(kernels)
