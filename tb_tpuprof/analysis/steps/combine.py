"""Several hosts as one job: the steps that all of them ran, and the sum of their hardware."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.hardware import Hardware
from tb_tpuprof.analysis.steps.record import Steps, no_steps
from tb_tpuprof.analysis.steps.waits import StepWait

Int64s = npt.NDArray[np.int64]
_MOST_SHIFTS = 1000  # maximum number of steps between hosts
_MOST_PAIRS = 4_000_000  # pairs of steps compared at once
# A day: clocks further apart are of different kinds (since the epoch, since the machine started)
_MOST_APART_NS = 86_400_000_000_000
# A second: tolerated offset of unsynchronized clocks if no shared events reveal the offset
_MOST_GAP_PS = 1_000_000_000_000
_NONE = slice(0, 0)


@dataclass(frozen=True)
class CommonSteps:
    """Steps that all hosts ran. `n_without`: number of hosts without steps; `is_disjoint`: hosts have steps,
    but none in common.

    `rows`: for each host, which of its own steps these are; empty slices for hosts without them.
    """

    steps: Steps
    n_without: int = 0
    is_disjoint: bool = False
    rows: tuple[slice, ...] = ()


def common_steps(parts: Sequence[Steps], start_ns: Sequence[int]) -> CommonSteps:
    """Align the steps of hosts in time and keep those that all hosts have; times and shares are the hosts'
    mean.

    The host whose steps span the shortest time leads. Every other host is shifted against it by whole steps,
    0, 1, 2 … and -1, -2 …; the shift with the longest overlap of steps wins, the first of equals. `start_ns`
    is the clock at each trace's 0. If accelerators compute in some hosts' steps, hosts without (coordinators,
    data workers) are left out. Hosts whose steps are more than a second apart were not captured together:
    they have no common steps.

        host A    │ 0 │ 1 │ 2 │ 3 │
        host B      │ 0 │ 1 │ 2 │         in common: A1/B0, A2/B1, A3/B2 if these overlap more than A0/B0 …
    """
    with_steps = [i for i, part in enumerate(parts) if len(part)]
    on_devices = [i for i in with_steps if parts[i].are_of_devices]
    with_steps, n_coordinators = (
        (on_devices, len(with_steps) - len(on_devices)) if on_devices else (with_steps, 0)
    )
    n_without = len(parts) - len(with_steps) - n_coordinators
    if not with_steps:
        n_incomplete, n_runs = (
            sum(getattr(part, name) for part in parts) for name in ("n_incomplete", "n_unmarked_runs")
        )
        return CommonSteps(no_steps(n_incomplete, n_runs), len(parts), rows=(_NONE,) * len(parts))
    if len(with_steps) == 1:
        return CommonSteps(
            parts[with_steps[0]],
            n_without,
            rows=tuple(slice(0, len(part)) if i in with_steps else _NONE for i, part in enumerate(parts)),
        )
    zero = min(start_ns[i] for i in with_steps)
    if max(start_ns[i] for i in with_steps) - zero > _MOST_APART_NS:
        return CommonSteps(no_steps(), n_without, True, (_NONE,) * len(parts))
    begins = [parts[i].start_ps + (start_ns[i] - zero) * 1000 for i in with_steps]
    ends = [begin + parts[i].duration_ps for begin, i in zip(begins, with_steps, strict=True)]
    lead = min(range(len(with_steps)), key=lambda k: int(ends[k].max() - begins[k].min()))
    if max(int(begin.min()) for begin in begins) - min(int(end.max()) for end in ends) > _MOST_GAP_PS:
        return CommonSteps(no_steps(), n_without, True, (_NONE,) * len(parts))
    shifts = [
        0 if k == lead else _best_shift(begins[lead], ends[lead], begins[k], ends[k])
        for k in range(len(with_steps))
    ]
    first = max(0, *(-shift for shift in shifts))
    last = min(len(parts[i]) - shift for i, shift in zip(with_steps, shifts, strict=True))
    if last <= first:
        return CommonSteps(no_steps(), n_without, True, (_NONE,) * len(parts))
    common_rows = [slice(first + shift, last + shift) for shift in shifts]
    return CommonSteps(
        _mean_steps([parts[i] for i in with_steps], common_rows, lead),
        n_without,
        rows=tuple(common_rows[with_steps.index(i)] if i in with_steps else _NONE for i in range(len(parts))),
    )


def _mean_steps(parts: Sequence[Steps], rows: Sequence[slice], lead: int) -> Steps:
    """Steps with the hosts' mean of each class; names, numbers and starts are those of the host `lead`."""
    leader, leader_rows = parts[lead], rows[lead]
    class_ps = np.sum([part.class_ps[own] for part, own in zip(parts, rows, strict=True)], axis=0)
    class_ps //= len(parts)
    return Steps(
        leader.number[leader_rows],
        leader.name[leader_rows],
        leader.start_ps[leader_rows],
        class_ps.sum(axis=1),
        class_ps,
        leader.source,
        leader.n_incomplete,
        leader.n_trimmed,
        how=leader.how,
        waits=_mean_waits(parts, rows),
        is_on_devices=leader.is_on_devices,
        is_ahead=all(part.is_ahead for part in parts),
    )


def _mean_waits(parts: Sequence[Steps], rows: Sequence[slice]) -> tuple[StepWait, ...]:
    """The hosts' mean of each wait, by name, longest first."""
    sums: dict[tuple[object, ...], StepWait] = {}
    for part, step_rows in zip(parts, rows, strict=True):
        for wait in part.waits:
            key = wait.kind, wait.name, wait.file, wait.line
            time_ps = wait.time_ps[step_rows]
            sums[key] = replace(wait, time_ps=sums[key].time_ps + time_ps if key in sums else time_ps)
    mean = (replace(wait, time_ps=wait.time_ps // len(parts)) for wait in sums.values())
    return tuple(sorted(mean, key=lambda wait: (-wait.total_ps, wait.name)))


def _best_shift(begin: Int64s, end: Int64s, other_begin: Int64s, other_end: Int64s) -> int:
    """The shift with the longest overlap: step i of the first host matches step i + shift of the other."""
    shifts = np.array(
        [*range(min(len(other_begin), _MOST_SHIFTS)), *range(-1, -min(len(begin), _MOST_SHIFTS), -1)],
        np.int64,
    )
    # Steps of a host follow one another, so each overlaps few steps of the other host: only these pairs are
    # compared.
    ordered = all(bool((np.diff(times) >= 0).all()) for times in (begin, end, other_begin, other_end))
    first = np.searchsorted(other_end, begin) if ordered else np.zeros(len(begin), np.int64)
    beyond = np.searchsorted(other_begin, end) if ordered else np.full(len(begin), len(other_begin))
    n_pairs = np.maximum(beyond - first, 0)
    overlap = np.zeros(len(begin) + len(other_begin), np.int64)
    for rows in _bounded(n_pairs):
        step = np.repeat(np.arange(rows.start, rows.stop), n_pairs[rows])
        before = np.cumsum(n_pairs[rows]) - n_pairs[rows]
        other = np.arange(len(step)) + np.repeat(first[rows] - before, n_pairs[rows])
        overlap_ps = np.minimum(end[step], other_end[other]) - np.maximum(begin[step], other_begin[other])
        np.add.at(overlap, other - step + len(begin), np.maximum(overlap_ps, 0))
    return int(shifts[overlap[shifts + len(begin)].argmax()])


def _bounded(n_pairs: Int64s) -> list[slice]:
    """Ranges of rows with at most _MOST_PAIRS pairs each, or with a single row."""
    total = np.cumsum(n_pairs)
    cuts = [0]
    while cuts[-1] < len(n_pairs):
        before = int(total[cuts[-1] - 1]) if cuts[-1] else 0
        cuts.append(max(cuts[-1] + 1, int(np.searchsorted(total, before + _MOST_PAIRS, side="right"))))
    return [slice(a, b) for a, b in itertools.pairwise(cuts)]


def sum_hardware(parts: Sequence[Hardware]) -> Hardware:
    """Hardware of all hosts: numbers of devices are summed, name and peaks are those of the first host that
    has devices, replicas those of the largest program.
    """
    first = next((part for part in parts if part.n_devices), parts[0])
    n_devices, n_chips = sum(part.n_devices for part in parts), sum(part.n_chips for part in parts)
    largest = max(parts, key=lambda part: part.n_replicas * part.n_partitions)
    return replace(
        first,
        n_devices=n_devices,
        n_chips=n_chips,
        n_replicas=largest.n_replicas,
        n_partitions=largest.n_partitions,
    )
