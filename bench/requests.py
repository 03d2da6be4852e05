"""A measurement's request to one side and its result, exchanged with a fresh process as one line of JSON
each.

Runs in the peer's environment too: standard library only.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median

WAITING, READY = "waiting", "ready"
N_REPEATS = 5
ZOOM_FRACTION = 0.01
ZOOM_START = 0.25
N_WINDOWS = 200
SEARCH_TEXT = "block_"
# Each is asked once: a second time its matches would be at hand.
QUERIES = (
    "name~^block_1.*MatMul dur>1us",
    "track:Stream dur>5us -name:sgemm",
    "step:100..900 name:forward",
    "thread:tf_Compute dur>2us name:einsum",
    "dur:1us..20us name:dense",
)


@dataclass(frozen=True)
class Request:
    """`tool` on the run in `run_dir`. `mode`: "first" call in the process, calls made "again", and after a
    first view "zoom" (windows of 1%), "windows" (200 random ones: the 95th percentile of times, the
    largest size), "search" (for SEARCH_TEXT) or "query" (QUERIES).

    `op`: the instruction in the middle of the graph, empty for what the side chooses; `with_times`: its times
    are asked for. `use_cache`: keep and use what this side caches on disk. `host` is the one whose trace is
    drawn.
    """

    tool: str
    run_dir: str
    host: str
    mode: str = "first"
    use_cache: bool = False
    width_px: int = 2000
    op: str = ""
    with_times: bool = True


@dataclass(frozen=True)
class Sample:
    """One measurement. `seconds` is the answer's body made, before compression; `peak_bytes` is the process's
    peak RSS.
    """

    seconds: float
    gzip_seconds: float
    body_bytes: int
    gzip_bytes: int
    peak_bytes: int


@dataclass(frozen=True)
class Answer:
    """The body of an answer and, of a timeline, the trace's length in the side's own unit of time."""

    body: bytes
    trace_length: float = 0.0


def zoom_windows(trace_length: float) -> list[tuple[float, float]]:
    """Adjacent windows of 1% each, from a quarter of the trace on; no two are equal, so none is answered
    from memory.

    Not from the middle: with the Python tracer on, JAX's own `stop_trace` can be the second half of a trace.
    """
    width = trace_length * ZOOM_FRACTION
    start = trace_length * ZOOM_START
    return [(start + k * width, start + (k + 1) * width) for k in range(N_REPEATS)]


def random_windows(trace_length: float) -> list[tuple[float, float]]:
    """200 windows of 0.01% to 10% of the trace, equally many in each decade, anywhere; the same on each
    call.
    """
    chance = random.Random(7)
    widths = [trace_length * 10 ** chance.uniform(-4, -1) for _ in range(N_WINDOWS)]
    starts = [chance.uniform(0, trace_length - width) for width in widths]
    return [(start, start + width) for start, width in zip(starts, widths, strict=True)]


def timed(ask: Callable[[], Answer], compress: Callable[[bytes], bytes]) -> tuple[Answer, Sample]:
    """Send one request; compress as the side's server does."""
    start = time.perf_counter()
    answer = ask()
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    n_gzip_bytes = len(compress(answer.body))
    return answer, Sample(seconds, time.perf_counter() - start, len(answer.body), n_gzip_bytes, 0)


def measured(
    request: Request,
    ask: Callable[[tuple[float, float] | None, str], Answer],
    compress: Callable[[bytes], bytes],
) -> Sample:
    """Send requests according to the mode; `ask` takes a timeline window and a text to search. Prints
    WAITING when everything is loaded, and starts when it reads a line; prints READY after the
    first answer.
    """
    print(WAITING, flush=True)
    sys.stdin.readline()
    first, sample = timed(lambda: ask(None, ""), compress)
    print(READY, flush=True)
    if request.mode == "again":
        sample = _typical([timed(lambda: ask(None, ""), compress)[1] for _ in range(N_REPEATS)])
    elif request.mode == "zoom":
        windows = zoom_windows(first.trace_length)
        sample = _typical([timed(lambda window=window: ask(window, ""), compress)[1] for window in windows])  # type: ignore[misc]
    elif request.mode == "windows":
        windows = random_windows(first.trace_length)
        samples = [timed(lambda window=window: ask(window, ""), compress)[1] for window in windows]  # type: ignore[misc]
        sample = _percentile(samples, 0.95)
    elif request.mode == "search":
        sample = _typical([timed(lambda: ask(None, SEARCH_TEXT), compress)[1] for _ in range(N_REPEATS)])
    elif request.mode == "query":
        samples = [timed(lambda query=query: ask(None, query), compress)[1] for query in QUERIES]  # type: ignore[misc]
        sample = max(samples, key=lambda each: each.seconds)
    return replace(sample, peak_bytes=peak_bytes())


def peak_bytes() -> int:
    """Peak resident memory of this process and of those that it started: at most the largest of them for each
    further processor.

    Linux counts what the process was before its program was loaded into `ru_maxrss`: a copy of the one that
    measures. So its own peak is read from where only the program's memory counts.
    """
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    own_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            own_bytes = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        pass
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit
    return own_bytes + children * ((os.cpu_count() or 1) - 1)


def read_request(arguments: Sequence[str]) -> Request:
    """The request a child was started with."""
    return Request(**json.loads(arguments[1]))


def write_sample(sample: Sample) -> None:
    """Hand the result to the parent."""
    print(json.dumps(asdict(sample)), flush=True)


def _percentile(samples: list[Sample], fraction: float) -> Sample:
    """The sample at a percentile of the time with compression, with the size of the largest answer."""
    sample = sorted(samples, key=lambda sample: sample.seconds + sample.gzip_seconds)[
        round(fraction * (len(samples) - 1))
    ]
    largest = max(samples, key=lambda sample: sample.gzip_bytes)
    return replace(sample, body_bytes=largest.body_bytes, gzip_bytes=largest.gzip_bytes)


def _typical(samples: list[Sample]) -> Sample:
    """The median of each number by itself."""
    columns = zip(*(asdict(sample).values() for sample in samples), strict=True)
    seconds, gzip_seconds, body, compressed, peak = (median(column) for column in columns)
    return Sample(seconds, gzip_seconds, int(body), int(compressed), int(peak))
