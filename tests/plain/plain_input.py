"""What steps wait for, as the documentation of the input pipeline page defines it, in plain loops over drawn
hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.plain.random_input import DrawnCore, DrawnHost, DrawnOp

_D2D = ("send", "send-done", "recv", "recv-done")
_RECV, _SEND = ("host recv", "host recv-done"), ("host send", "host send-done")
_OUTPUT = ("outfeed", *_SEND)
READERS = ("TFRecord", "TextLine")
HOST_CATEGORIES = ("enqueuing", "preprocessing", "advanced_reads", "demanded_reads", "other")


@dataclass
class PlainHost:
    """By step: `duration`, `parts` of a TensorCore (means over cores), `sparse` of a SparseCore, and `moved`,
    idle time that counts as waiting. `shares`: the share that waits for input, by core and step.
    """

    duration: list[int]
    parts: dict[str, list[int]] = field(default_factory=dict)
    sparse: dict[str, list[int]] = field(default_factory=dict)
    moved: list[int] = field(default_factory=list)
    shares: list[list[float]] = field(default_factory=list)


def plain_host(host: DrawnHost) -> PlainHost:
    """All values of one host. A step lasts as long as on its slowest core."""
    n = len(host.cores[0].steps)
    result = PlainHost([max(core.steps[i][1] for core in host.cores) for i in range(n)])
    has_infeed = any(_mean(host, i, ("infeed",)) for i in range(n))
    for step in range(n):
        parts, moved = _step(host, step, result.duration[step], has_infeed)
        for name, time in parts.items():
            result.parts.setdefault(name, []).append(time)
        result.moved.append(moved)
        if host.sparse:
            for name, time in _sparse(host, step, result.duration[step]).items():
                result.sparse.setdefault(name, []).append(time)
    for core in host.cores:
        result.shares.append([_share(core, step, result, step) for step in range(n)])
    return result


def _time(core: DrawnCore, step: int, categories: Sequence[str]) -> int:
    return sum(op.duration_ps for op in core.ops if op.step == step and _is(op, categories))


def _is(op: DrawnOp, categories: Sequence[str]) -> bool:
    if categories == ("collective",):
        return op.category.startswith(("all-reduce", "all-gather"))
    return op.category in categories


def _mean(host: DrawnHost, step: int, categories: Sequence[str]) -> int:
    return sum(_time(core, step, categories) for core in host.cores) // len(host.cores)


def _step(host: DrawnHost, step: int, duration: int, has_infeed: bool) -> tuple[dict[str, int], int]:
    """The parts of one step, and the idle time that counts as waiting."""
    infeed, collective = _mean(host, step, ("infeed",)), _mean(host, step, ("collective",))
    d2d, output, received = _mean(host, step, _D2D), _mean(host, step, _OUTPUT), _mean(host, step, _RECV)
    named = ("infeed", *_D2D, *_OUTPUT, *_RECV)
    compute = sum(
        op.duration_ps
        for core in host.cores
        for op in core.ops
        if op.step == step and not _is(op, named) and not _is(op, ("collective",))
    ) // len(host.cores)
    idle = duration - infeed - collective - d2d - output - received - compute
    moved = 0
    if has_infeed:
        # Other cores wait for the one that waits longest: taken from idle time, then collectives, then
        # compute.
        more = max(_time(core, step, ("infeed",)) for core in host.cores) - infeed
        taken = min(more, idle)
        idle, more = idle - taken, more - taken
        from_collectives = min(more, collective)
        collective, more = collective - from_collectives, more - from_collectives
        from_compute = min(more, compute)
        compute -= from_compute
        infeed += taken + from_collectives + from_compute
    else:
        moved = min(idle, _union([wait[1:] for wait in host.waits if wait[0] == step]))
        idle, infeed = idle - moved, infeed + moved
    send, sparse = _mean(host, step, ("host send",)), _mean(host, step, ("sparse-core-v0 infeed wait",))
    send, sparse = min(send, output), min(sparse, compute)
    waited = min(_waited_in_collectives(host, step), collective)
    parts = {
        "tc_compute": compute - sparse,
        "collective_compute": collective - waited,
        "collective_sync": waited,
        "device_to_device": d2d,
        "sparse_wait": sparse,
        "tc_infeed": infeed,
        "host_transfer": received + send,
        "tc_outfeed": output - send,
        "tc_idle": idle,
    }
    return parts, moved


def _union(spans: Sequence[tuple[int, ...]]) -> int:
    """Time covered by any of the spans."""
    total, covered_ps = 0, 0
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, covered_ps))
        covered_ps = max(covered_ps, end)
    return total


def _waited_in_collectives(host: DrawnHost, step: int) -> int:
    """Time of collectives beyond that of the fastest core, the mean over cores. Collectives of several cores
    match by id, or by name and occurrence.
    """
    runs: dict[tuple[object, ...], list[int]] = {}
    for core in host.cores:
        n_runs: dict[str, int] = {}
        for op in sorted(core.ops, key=lambda one: one.start_ps):
            if op.step != step or not _is(op, ("collective",)):
                continue
            n_runs[op.name] = n_runs.get(op.name, 0) + 1
            key = ("id", op.unique) if op.unique >= 0 else ("name", op.name, n_runs[op.name])
            runs.setdefault(key, []).append(op.duration_ps)
    return sum(duration - min(one) for one in runs.values() for duration in one) // len(host.cores)


def _share(core: DrawnCore, step: int, host: PlainHost, klass: int) -> float:
    """Share of infeed, host receive, and the waiting share of the core's idle time in the core's own step."""
    length = core.steps[step][1]
    spent = sum(op.duration_ps for op in core.ops if op.step == step)
    idle = host.parts["tc_idle"][klass] + host.moved[klass]
    of_idle = host.moved[klass] / idle if idle else 0.0
    return (
        _time(core, step, ("infeed",)) + _time(core, step, _RECV) + max(length - spent, 0) * of_idle
    ) / length


def _sparse(host: DrawnHost, step: int, duration: int) -> dict[str, int]:
    """Means over SparseCores. Events without a step belong to the TensorCores' step that contains their
    middle.
    """
    begin = min(core.steps[step][0] for core in host.cores)
    sums = {"infeed": 0, "outfeed": 0, "": 0}
    for core in host.sparse:
        for op in core.ops:
            middle = op.start_ps + op.duration_ps // 2
            if op.step == step or (op.step < 0 and _step_at(host, middle) == (begin, duration)):
                sums[op.category] += op.duration_ps
    n = len(host.sparse)
    busy = min(sum(sums.values()) // n, duration)
    infeed, outfeed = sums["infeed"] // n, sums["outfeed"] // n
    return {
        "sc_compute": max(busy - infeed - outfeed, 0),
        "sc_infeed": infeed,
        "sc_outfeed": outfeed,
        "sc_idle": duration - busy,
    }


def _step_at(host: DrawnHost, time: int) -> tuple[int, int] | None:
    """Begin and length of the last step that started before a time, if it is still open."""
    result = None
    for i in range(len(host.cores[0].steps)):
        begin = min(core.steps[i][0] for core in host.cores)
        length = max(core.steps[i][1] for core in host.cores)
        if begin <= time:
            result = (begin, length) if time < begin + length else None
    return result


def category(name: str) -> str:
    """Category of a stage; empty for other operations."""
    if "InfeedEnqueue" in name:
        return "enqueuing"
    if not name.startswith("Iterator::"):
        return ""
    if name.rpartition("::")[2] in READERS:
        return "advanced_reads" if "::Prefetch" in name else "demanded_reads"
    return "preprocessing"


def host_times(hosts: Sequence[DrawnHost]) -> tuple[dict[str, int], float]:
    """Time by category over all threads, and the share of time spent enqueuing; 0 if unknown."""
    events = [event for host in hosts for thread in host.threads for event in thread]
    names = {name for name, _, _ in events}
    total = dict.fromkeys(HOST_CATEGORIES, 0)
    for name, _start, duration in events:
        waits = name.rpartition("::")[2] in ("Root", "Prefetch") and any(
            other.rpartition("::")[0] == name for other in names
        )
        if category(name) and not waits:
            total[category(name)] += duration
    enqueuing = between = 0
    for host in hosts:
        for thread in host.threads:
            enqueues = [event for event in thread if category(event[0]) == "enqueuing"]
            for i in range(len(enqueues) - 1):
                enqueuing += enqueues[i][2]
                between += enqueues[i + 1][1] - enqueues[i][1]
    return total, min(1.0, enqueuing / between) if between else 0.0


def shown_times(total: dict[str, int], ratio: float) -> list[float]:
    """If the host enqueues for a share r of its time, E in total, the rest takes E (1 - r) / r; else raw
    times.
    """
    enqueued = total["enqueuing"]
    rest = [total[name] for name in HOST_CATEGORIES[1:]]
    if not ratio or not enqueued:
        return [enqueued, *rest]
    other_ps = enqueued * (1 - ratio) / ratio
    if not sum(rest):
        return [enqueued, 0.0, 0.0, 0.0, other_ps]
    return [enqueued, *(time * other_ps / sum(rest) for time in rest)]
