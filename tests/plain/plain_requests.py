"""Random inference jobs and, by plain loops over every microsecond, where their requests' time goes."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, build, event

SCHEDULER = 4
_COPIES = {"to_device": "MemcpyHToD", "to_host": "MemcpyDToH", "device": "fusion"}


@dataclass
class Span:
    """From `start` to `end` in µs."""

    start: int
    end: int

    def holds(self, moment: int) -> bool:
        return self.start <= moment < self.end


@dataclass
class Run:
    """What a thread does for requests: its own calls by kind (work, wait, launch), and what it launched."""

    span: Span
    calls: list[tuple[str, Span]] = field(default_factory=list)
    device: list[tuple[str, Span]] = field(default_factory=list)

    @property
    def launched(self) -> int:
        """The first launch, and at least the first kernel or copy back."""
        moments = [span.start for kind, span in self.calls if kind == "launch"]
        moments += [span.start for kind, span in self.device if kind != "to_device"]
        return max(self.span.start, min(moments))


@dataclass
class Request:
    """A request; `batch` and `queued` if a batch answers it."""

    run: Run
    batch: Run | None = None
    queued: int = 0


@dataclass
class Job:
    """Requests by start, and the trace that shows them."""

    requests: list[Request]
    batches: list[Run]
    trace: Trace


def random_job(seed: int, is_batched: bool) -> Job:
    """Requests on three threads, sometimes at once; batched ones in two batches at a time."""
    chance = random.Random(seed)
    ids = iter(range(1, 10_000))
    lines: dict[str, list[DrawnEvent]] = {}
    streams: dict[str, list[DrawnEvent]] = {}
    runs: list[Run] = []
    batches = _batches(chance, ids, lines, streams) if is_batched else []
    requests = []
    for number in range(3):
        moment = chance.randrange(20)
        events = lines.setdefault(f"thread {number}", [])
        for step in range(4):
            request = _request(chance, moment, batches, ids)
            requests.append(request)
            runs.append(request.run)
            _draw(chance, request, (step, batches), events, streams)
            moment = request.run.span.end + chance.randrange(30)
    requests.sort(key=lambda request: request.run.span.start)
    planes = [DrawnPlane("/host:CPU", lines), DrawnPlane("/device:GPU:0", streams)]
    for plane in planes:
        for events in plane.lines.values():
            events.sort(key=lambda one: (one.start_ps, -one.duration_ps))
    return Job(requests, batches, build([plane for plane in planes if plane.lines]))


def _fill(chance: random.Random, run: Run, first: int) -> None:
    """Calls of the thread, one after another, and the work of its launches."""
    moment = first
    while moment < run.span.end - 6:
        kind = chance.choice(("work", "wait", "launch", "launch"))
        span = Span(moment, min(moment + chance.randrange(1, 6), run.span.end))
        run.calls.append((kind, span))
        if kind == "launch":
            start = span.start + chance.randrange(1, 25)
            run.device.append(
                (
                    chance.choice(("device", "device", "to_device", "to_host")),
                    Span(start, start + chance.randrange(1, 12)),
                )
            )
        moment = span.end + chance.randrange(4)


def _batches(
    chance: random.Random,
    ids: object,
    lines: dict[str, list[DrawnEvent]],
    streams: dict[str, list[DrawnEvent]],
) -> list[Run]:
    result = []
    for number in range(2):
        moment = 25 + chance.randrange(20)
        for _ in range(3):
            run = Run(Span(moment, moment + chance.randrange(20, 50)))
            _fill(chance, run, moment + 1)
            result.append(run)
            events = lines.setdefault(f"batches {number}", [])
            events.append(
                event(
                    "ProcessBatch",
                    run.span.start,
                    run.span.end - run.span.start,
                    _ct=SCHEDULER,
                    _c=id(run) % 2**31,
                )
            )
            _draw_calls(chance, run, events, streams)
            moment = run.span.end + chance.randrange(20)
    return result


def _request(chance: random.Random, moment: int, batches: list[Run], _ids: object) -> Request:
    if not batches:
        run = Run(Span(moment, moment + chance.randrange(20, 60)))
        _fill(chance, run, moment + chance.randrange(6))
        last = max((span.end for kind, span in run.device if kind != "to_device"), default=0)
        # A request that only starts its work lasts until the work is done.
        return Request(Run(Span(moment, max(run.span.end, last)), run.calls, run.device), None, run.span.end)
    later = [run for run in batches if run.span.start > moment + 4]
    if not later:
        return Request(Run(Span(moment, moment + 15)), None, moment + 15)
    chosen = chance.choice(later)
    # Some requests end before their batch does.
    end = max(chosen.span.start + 1, chosen.span.end + chance.randrange(-6, 12))
    return Request(Run(Span(moment, end)), chosen, moment + 3)


def _draw(
    chance: random.Random,
    request: Request,
    place: tuple[int, list[Run]],
    events: list[DrawnEvent],
    streams: dict[str, list[DrawnEvent]],
) -> None:
    step, batches = place
    start = request.run.span.start
    if batches:
        events.append(event("BatchingSessionRun", start, request.run.span.end - start))
        if request.batch:
            events.append(
                event("ScheduleWithoutSplit", start, 3, _pt=SCHEDULER, _p=id(request.batch) % 2**31)
            )
        return
    # `queued` is the end of the annotation itself.
    events.append(event("predict", start, request.queued - start, _r=1, step_num=step))
    _draw_calls(chance, request.run, events, streams)


def _draw_calls(
    chance: random.Random, run: Run, events: list[DrawnEvent], streams: dict[str, list[DrawnEvent]]
) -> None:
    names = {"work": "encode", "wait": "cudaStreamSynchronize", "launch": "cudaLaunchKernel"}
    launched = iter(run.device)
    for kind, span in run.calls:
        stats = {}
        if kind == "launch":
            what, when = next(launched)
            stats = {"correlation_id": chance.randrange(2**40)}
            stream = streams.setdefault(f"stream {len(streams)}", [])
            stream.append(event(_COPIES[what], when.start, when.end - when.start, **stats))
        events.append(event(names[kind], span.start, span.end - span.start, **stats))


def parts_of(request: Request, job: Job) -> Counter[str]:
    """µs of each part of one request."""
    result: Counter[str] = Counter()
    for moment in range(request.run.span.start, request.run.span.end):
        result[_part(request, moment, job)] += 1
    return result


def _part(request: Request, moment: int, job: Job) -> str:
    if request.batch is None:
        return _of_run(request.run, moment, job, request.queued if not job.batches else None)
    if moment < request.queued:
        return "host_before"
    if moment < request.batch.span.start:
        return "queue"
    if moment < request.batch.span.end:
        return _of_run(request.batch, moment, job, None)
    return "host_after"


def _of_run(run: Run, moment: int, job: Job, thread_end: int | None) -> str:
    """`thread_end`: when the run's thread left it, if its work goes on."""
    for kind in ("device", "to_device", "to_host"):
        if any(what == kind and span.holds(moment) for what, span in run.device):
            return kind
    calls = [kind for kind, span in run.calls if span.holds(moment)]
    is_waiting = "wait" in calls or moment >= (run.span.end if thread_end is None else thread_end)
    done = [min(span.end, run.span.end) for kind, span in run.device if kind != "to_device"]
    if not done or moment < run.launched:
        part = "" if is_waiting else "host_before"
    elif moment < max(done):
        part = "host_runtime" if calls and not is_waiting else ""
    else:
        part = "" if is_waiting else "host_after"
    if part:
        return part
    owners = [request.run for request in job.requests] + job.batches
    is_busy = any(what == "device" and span.holds(moment) for one in owners for what, span in one.device)
    return "queue" if is_busy else "wait"
