"""A model server's trace, drawn from the names that TensorFlow's batching writes, with planted times.
Synthetic: no server was measured.

Three requests of unlike times, the first two in one batch; a column is a microsecond.

    0         10        20        30        40        50        60        70
    caller 1  [BatchingSessionRun                       ]
              <Schedule >
    caller 2      [BatchingSessionRun                        ]
                  <Schedule>
    batches                        [ProcessBatch   ]
    GPU                                <k    ><k>
"""

from __future__ import annotations

from collections.abc import Mapping

from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, Value, build, event

SCHEDULER = 4  # the kind of context that ties a request to its batch


def request(start: int, length: int, batch: int, size: int, model: str = "") -> list[DrawnEvent]:
    """A request that is put into a batch's queue during its first 5 µs."""
    stats: Mapping[str, Value] = {"model_id": model} if model else {}
    return [
        event("BatchingSessionRun", start, length, **stats),
        event("ScheduleWithoutSplit", start, 5, _pt=SCHEDULER, _p=batch, batching_input_task_size=size),
    ]


def batch(start: int, length: int, number: int, padding: int, padded: int) -> list[DrawnEvent]:
    """A batch whose inputs are concatenated during its first 2 µs; then it launches a kernel for 1 µs."""
    return [
        event("ProcessBatch", start, length, _ct=SCHEDULER, _c=number),
        event("ConcatInputTensors", start, 2, padding_amount=padding, batch_size_after_padding=padded),
        event("cudaLaunchKernel", start + 3, 1, correlation_id=number),
    ]


def kernel(name: str, start: int, length: int, number: int) -> DrawnEvent:
    """A kernel of a batch."""
    return event(name, start, length, correlation_id=number)


def server() -> Trace:
    """Three requests in two batches."""
    host = DrawnPlane(
        "/host:CPU",
        {
            "caller-1": request(0, 60, 7, 2, "cat:1"),
            "caller-2": request(10, 48, 7, 3, "cat:1"),
            "caller-3": request(40, 100, 8, 4, "dog:2"),
            "batches": [*batch(30, 20, 7, 3, 8), *batch(80, 50, 8, 0, 4)],
        },
    )
    gpu = DrawnPlane(
        "/device:GPU:0",
        {"stream": [kernel("MemcpyHToD", 35, 2, 7), kernel("k", 38, 10, 7), kernel("k", 90, 30, 8)]},
    )
    return build([host, gpu])
