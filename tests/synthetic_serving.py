"""A model server's trace from the names that TensorFlow's batching and libtpu write, with planted times.
Synthetic: no server was measured.

Requests arrive at random, with bursts; each waits until its model's batch begins: as soon as the server is
free and the batch is full or its first request has waited long enough. A batch is padded to an allowed size
and takes longer the larger that is.

    caller     ├ BatchingSessionRun ──────────────────────────────────────────┤
               ▪ ScheduleWithoutSplit
    batches          (queue)       ├ ProcessBatch ─────────────────────┤
                                    ▪concat ▪enqueue ▪copy      ▪split
    TPU                                             ■■ program ■■
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tb_tpuprof.ingest.xspace.messages import xspace_class
from tests.synthetic import PlaneWriter

US = 1_000_000
_SCHEDULER, _LAUNCH_QUEUE = 4, 0


@dataclass(frozen=True)
class Server:
    """A server and its load. Times in µs; `per_s`: arrivals per second, three times as many in bursts."""

    models: tuple[str, ...] = ("chat-7b:3", "embed:1")
    n_requests: int = 1200
    per_s: int = 620
    allowed_sizes: tuple[int, ...] = (1, 4, 8)
    timeout: int = 2000
    program: int = 2400
    per_slot: int = 500
    seed: int = 7


@dataclass
class Planted:
    """A request's times in µs: when it came, was queued, began and ended to be processed, and ended; its
    parts; its batch.
    """

    start: int
    end: int
    parts: dict[str, int]
    model: str
    batch: int


@dataclass
class PlantedBatch:
    """A batch's times in µs, and its sizes."""

    start: int
    end: int
    size: int
    padded: int
    delay: int
    device: int
    model: str


@dataclass
class Serving:
    """The file's bytes, and what was planted: requests by start, batches by start."""

    data: bytes
    requests: list[Planted] = field(default_factory=list)
    batches: list[PlantedBatch] = field(default_factory=list)


def serving(server: Server = Server()) -> Serving:
    """A trace of the server, and its truth."""
    chance = random.Random(server.seed)
    arrivals = _arrivals(server, chance)
    space = xspace_class()()
    device, host = PlaneWriter(space, "/device:TPU:0"), PlaneWriter(space, "/host:CPU")
    device.stats(device.plane, {"device_type_string": "TPU v5 lite"})
    modules = device.line("XLA Modules", 1, 1000)
    loop = host.line("batches", 1, 1000)
    callers: list[tuple[int, object]] = []
    result, free = Serving(b""), 0
    queues: dict[str, list[int]] = {model: [] for model in server.models}
    position = 0
    while position < len(arrivals) or any(queues.values()):
        moment, model = _next_batch(server, arrivals, position, queues, free)
        while position < len(arrivals) and arrivals[position][0] + _SCHEDULE < moment:
            queues[arrivals[position][1]].append(arrivals[position][0])
            position += 1
        waiting = queues[model]
        members, queues[model] = waiting[: server.allowed_sizes[-1]], waiting[server.allowed_sizes[-1] :]
        planted = _write_batch(
            server, (host, loop, device, modules), (moment, model, members), len(result.batches)
        )
        result.batches.append(planted)
        for start in members:
            end = planted.end + chance.randrange(-20, 120)
            _write_request(host, callers, (start, end, model), len(result.batches))
            result.requests.append(_planted(start, end, planted, len(result.batches) - 1))
        free = planted.end + 30
    space.hostnames.append(b"synthetic-server")
    result.data = space.SerializeToString()
    result.requests.sort(key=lambda request: request.start)
    return result


_SCHEDULE, _CONCAT, _ENQUEUE, _COPY, _SPLIT = 6, 90, 40, 150, 60


def _arrivals(server: Server, chance: random.Random) -> list[tuple[int, str]]:
    """(µs, model) of each request; the first one comes at 0, where the trace begins."""
    moment, found = 0.0, []
    for number in range(server.n_requests):
        rate = server.per_s * (3 if number % 400 > 330 else 1)
        moment += chance.expovariate(rate / 1e6) if number else 0
        found.append((int(moment), chance.choices(server.models, range(len(server.models), 0, -1))[0]))
    return found


def _next_batch(
    server: Server, arrivals: list[tuple[int, str]], position: int, queues: dict[str, list[int]], free: int
) -> tuple[int, str]:
    """When the next batch begins, and of which model."""
    best: tuple[int, str] | None = None
    for model in server.models:
        coming = [moment for moment, of in arrivals[position : position + 200] if of == model]
        members = (queues[model] + coming)[: server.allowed_sizes[-1]]
        if not members:
            continue
        full = members[-1] + _SCHEDULE if len(members) == server.allowed_sizes[-1] else 10**12
        moment = max(free, min(members[0] + server.timeout, full) + 1)
        best = min(best, (moment, model)) if best else (moment, model)
    assert best is not None
    return best


def _write_batch(
    server: Server,
    lines: tuple[PlaneWriter, object, PlaneWriter, object],
    batch: tuple[int, str, list[int]],
    number: int,
) -> PlantedBatch:
    host, loop, device, modules = lines
    start, model, members = batch
    size = len(members)
    padded = next(allowed for allowed in server.allowed_sizes if allowed >= size)
    length = server.program + server.per_slot * padded
    enqueue = start + _CONCAT
    copy = enqueue + _ENQUEUE
    program = copy + _COPY + 20
    end = program + length + _SPLIT
    context = {"_ct": _SCHEDULER, "_c": number + 1}
    host.event(loop, "ProcessBatch", start * US, (end - start) * US, context)
    sizes = {"padding_amount": padded - size, "batch_size_after_padding": padded}
    host.event(loop, "ConcatInputTensors", start * US, _CONCAT * US, sizes)
    launch = {"device_ordinal": 0, "queue_id": _LAUNCH_QUEUE, "run_id": number + 1, "core_type": 0}
    host.event(loop, "DoEnqueueProgram", enqueue * US, _ENQUEUE * US, launch)
    host.event(loop, "tpu::System::TransferToDevice", copy * US, _COPY * US)
    run = {"queue_id": _LAUNCH_QUEUE, "run_id": number + 1, "core_type": 0}
    device.event(modules, f"jit_{model.partition(':')[0]}(1)", program * US, length * US, run)
    host.event(loop, "SplitOutputTensors", (program + length) * US, _SPLIT * US)
    return PlantedBatch(start, end, size, padded, start - members[0] - _SCHEDULE, length, model)


def _write_request(
    host: PlaneWriter, callers: list[tuple[int, object]], request: tuple[int, int, str], context: int
) -> None:
    """A request on the first thread that is free."""
    start, end, model = request
    place = next((i for i, (until, _line) in enumerate(callers) if until <= start), len(callers))
    if place == len(callers):
        callers.append((0, host.line(f"caller/{place}", place + 10, 1000)))
    line = callers[place][1]
    callers[place] = (end, line)
    host.event(line, "BatchingSessionRun", start * US, (end - start) * US, {"model_id": model})
    queued = {"_pt": _SCHEDULER, "_p": context, "batching_input_task_size": 1}
    host.event(line, "ScheduleWithoutSplit", start * US, _SCHEDULE * US, queued)


def _planted(start: int, end: int, batch: PlantedBatch, number: int) -> Planted:
    """The parts of a request, of which the batch's end may be cut off."""
    device = batch.device
    cut = max(0, batch.end - end)
    parts = {
        "host_before": _SCHEDULE + _CONCAT,
        "host_runtime": _ENQUEUE,
        "queue": batch.start - start - _SCHEDULE,
        "to_device": _COPY,
        "wait": 20,
        "device": device,
        "host_after": _SPLIT - cut + max(0, end - batch.end),
    }
    return Planted(start, end, parts, batch.model, number)
