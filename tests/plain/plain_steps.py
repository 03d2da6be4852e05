"""The steps that all hosts have in common, as documented, in plain loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tb_tpuprof.analysis.steps.record import Steps

_SECOND_PS, _DAY_NS = 10**12, 86_400 * 10**9
Key = tuple[object, ...]


@dataclass
class PlainSteps:
    """`rows[host]`: rows of these steps among its own. Times are means over the hosts, rounded down."""

    rows: list[list[int]]
    names: list[str] = field(default_factory=list)
    start_ps: list[int] = field(default_factory=list)
    class_ps: list[list[int]] = field(default_factory=list)
    waits: dict[Key, list[int]] = field(default_factory=dict)
    n_without: int = 0
    is_disjoint: bool = False


def plain_steps(parts: Sequence[Steps], start_ns: Sequence[int]) -> PlainSteps:
    """Common steps of the hosts with steps; if some of them are of accelerators, the other hosts
    are ignored.
    """
    hosts = [i for i, part in enumerate(parts) if len(part)]
    n_without = len(parts) - len(hosts)
    with_devices = [i for i in hosts if parts[i].source == "device" or parts[i].is_on_devices]
    hosts = with_devices or hosts
    nothing = PlainSteps([[] for _ in parts], n_without=n_without)
    if not hosts:
        return nothing
    times = {i: _absolute(parts[i], start_ns[i]) for i in hosts}
    if len(hosts) > 1 and _apart(hosts, start_ns, times):
        return PlainSteps(nothing.rows, n_without=n_without, is_disjoint=True)
    lead = _shortest(hosts, times)
    shift = {i: 0 if i == lead else _shift(times[lead], times[i]) for i in hosts}
    common = [at for at in range(len(times[lead])) if all(0 <= at + shift[i] < len(times[i]) for i in hosts)]
    if not common:
        return PlainSteps(nothing.rows, n_without=n_without, is_disjoint=True)
    rows = [[at + shift[i] for at in common] if i in hosts else [] for i in range(len(parts))]
    n_classes = parts[lead].class_ps.shape[1]
    return PlainSteps(
        rows,
        [parts[lead].name[at] for at in common],
        [int(parts[lead].start_ps[at]) for at in common],
        [
            [
                sum(int(parts[i].class_ps[rows[i][k], c]) for i in hosts) // len(hosts)
                for c in range(n_classes)
            ]
            for k in range(len(common))
        ],
        _waits([parts[i] for i in hosts], [rows[i] for i in hosts]),
        n_without,
    )


def _absolute(part: Steps, start_ns: int) -> list[tuple[int, int]]:
    """Begin and end of each step on a common clock."""
    result = []
    for begin, duration in zip(part.start_ps.tolist(), part.duration_ps.tolist(), strict=True):
        position_ps = begin + start_ns * 1000
        result.append((position_ps, position_ps + duration))
    return result


def _apart(hosts: list[int], start_ns: Sequence[int], times: dict[int, list[tuple[int, int]]]) -> bool:
    """Whether clocks are of different kinds, or a host's steps begin over a second after another's end."""
    for a in hosts:
        for b in hosts:
            if start_ns[b] - start_ns[a] > _DAY_NS:
                return True
            if min(begin for begin, _ in times[b]) - max(end for _, end in times[a]) > _SECOND_PS:
                return True
    return False


def _shortest(hosts: list[int], times: dict[int, list[tuple[int, int]]]) -> int:
    """The host whose steps span the shortest time, the first if several do."""
    best, least = hosts[0], None
    for i in hosts:
        span = max(end for _, end in times[i]) - min(begin for begin, _ in times[i])
        if least is None or span < least:
            best, least = i, span
    return best


def _shift(lead: list[tuple[int, int]], other: list[tuple[int, int]]) -> int:
    """The first of 0, 1, 2 … -1, -2 … with the longest overlap of steps i of the leader and i + shift of the
    other.
    """
    best, longest = 0, -1
    for shift in [*range(len(other)), *(-k for k in range(1, len(lead)))]:
        overlap = 0
        for i, (begin, end) in enumerate(lead):
            if 0 <= i + shift < len(other):
                its_begin, its_end = other[i + shift]
                overlap += max(0, min(end, its_end) - max(begin, its_begin))
        if overlap > longest:
            best, longest = shift, overlap
    return best


def _waits(parts: list[Steps], rows: list[list[int]]) -> dict[Key, list[int]]:
    """Mean over the hosts in each step, by what is waited for. A host that does not wait for it counts as
    0.
    """
    total: dict[Key, list[int]] = {}
    for part, step_rows in zip(parts, rows, strict=True):
        for wait in part.waits:
            sums = total.setdefault((wait.kind, wait.name, wait.file, wait.line), [0] * len(step_rows))
            for k, row in enumerate(step_rows):
                sums[k] += int(wait.time_ps[row])
    return {key: [value // len(parts) for value in sums] for key, sums in total.items()}
