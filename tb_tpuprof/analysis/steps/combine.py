"""Several hosts as one job: steps that all of them ran, operations and hardware summed."""

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
_MOST_SHIFTS = 1000  # steps by which hosts may be apart
_MOST_PAIRS = 4_000_000  # of steps compared at once
# A day: clocks further apart are not of one kind (since the epoch, since the machine started)
_MOST_APART_NS = 86_400_000_000_000
# A second: what clocks that nobody synchronised may be off, where nothing shared tells by how much
_MOST_GAP_PS = 1_000_000_000_000
_NONE = slice(0, 0)


@dataclass(frozen=True)
class CommonSteps:
    """Steps that all hosts ran. `n_without`: hosts that have none; `is_disjoint`: hosts have steps, but none
    in common.

    `rows`: for each host, which of its own steps these are; empty slices where it has none.
    """

    steps: Steps
    n_without: int = 0
    is_disjoint: bool = False
    rows: tuple[slice, ...] = ()


def common_steps(parts: Sequence[Steps], start_ns: Sequence[int]) -> CommonSteps:
    """Align the steps of hosts in time and keep those that all have; times and shares are the hosts' mean.

    The host whose steps span the shortest time leads. Every other is shifted against it by whole steps, 0, 1,
    2 … and -1, -2 …; the shift under which steps overlap longest counts, the first of equals. `start_ns` is
    the clock at each trace's 0. Where some hosts' steps are those of accelerators, hosts without
    (coordinators, data workers) are left out of the steps. Hosts whose steps lie more than a second apart
    were not captured together: they have none in common.

        host A    │ 0 │ 1 │ 2 │ 3 │
        host B      │ 0 │ 1 │ 2 │         in common: A1/B0, A2/B1, A3/B2 if these overlap more than A0/B0 …
    """
    given = [i for i, part in enumerate(parts) if len(part)]
    on_devices = [i for i in given if parts[i].source == "device"]
    given, n_coordinators = (on_devices, len(given) - len(on_devices)) if on_devices else (given, 0)
    n_without = len(parts) - len(given) - n_coordinators
    if not given:
        n_incomplete, n_runs = (
            sum(getattr(part, name) for part in parts) for name in ("n_incomplete", "n_unmarked_runs")
        )
        return CommonSteps(no_steps(n_incomplete, n_runs), len(parts), rows=(_NONE,) * len(parts))
    if len(given) == 1:
        return CommonSteps(
            parts[given[0]],
            n_without,
            rows=tuple(slice(0, len(part)) if i in given else _NONE for i, part in enumerate(parts)),
        )
    zero = min(start_ns[i] for i in given)
    if max(start_ns[i] for i in given) - zero > _MOST_APART_NS:
        return CommonSteps(no_steps(), n_without, True, (_NONE,) * len(parts))
    begins = [parts[i].start_ps + (start_ns[i] - zero) * 1000 for i in given]
    ends = [begin + parts[i].duration_ps for begin, i in zip(begins, given, strict=True)]
    lead = min(range(len(given)), key=lambda k: int(ends[k].max() - begins[k].min()))
    if max(int(begin.min()) for begin in begins) - min(int(end.max()) for end in ends) > _MOST_GAP_PS:
        return CommonSteps(no_steps(), n_without, True, (_NONE,) * len(parts))
    shifts = [
        0 if k == lead else _best_shift(begins[lead], ends[lead], begins[k], ends[k])
        for k in range(len(given))
    ]
    first = max(0, *(-shift for shift in shifts))
    last = min(len(parts[i]) - shift for i, shift in zip(given, shifts, strict=True))
    if last <= first:
        return CommonSteps(no_steps(), n_without, True, (_NONE,) * len(parts))
    chosen = [slice(first + shift, last + shift) for shift in shifts]
    leader, of_leader = parts[given[lead]], chosen[lead]
    class_ps = np.sum(
        [parts[i].class_ps[part] for i, part in zip(given, chosen, strict=True)], axis=0
    ) // len(given)
    return CommonSteps(
        Steps(
            leader.number[of_leader],
            leader.name[of_leader],
            leader.start_ps[of_leader],
            class_ps.sum(axis=1),
            class_ps,
            leader.source,
            leader.n_incomplete,
            leader.n_trimmed,
            how=leader.how,
            waits=_mean_waits([parts[i] for i in given], chosen),
        ),
        n_without,
        rows=tuple(chosen[given.index(i)] if i in given else _NONE for i in range(len(parts))),
    )


def _mean_waits(parts: Sequence[Steps], rows: Sequence[slice]) -> tuple[StepWait, ...]:
    """What the steps of several hosts wait for by name: the hosts' mean, longest first."""
    found: dict[tuple[object, ...], StepWait] = {}
    for part, chosen in zip(parts, rows, strict=True):
        for wait in part.waits:
            key = wait.kind, wait.name, wait.file, wait.line
            mine = wait.time_ps[chosen]
            found[key] = replace(wait, time_ps=found[key].time_ps + mine if key in found else mine)
    mean = (replace(wait, time_ps=wait.time_ps // len(parts)) for wait in found.values())
    return tuple(sorted(mean, key=lambda wait: (-wait.total_ps, wait.name)))


def _best_shift(begin: Int64s, end: Int64s, other_begin: Int64s, other_end: Int64s) -> int:
    """Step i of the first host goes with step i + shift of the other."""
    shifts = np.array(
        [*range(min(len(other_begin), _MOST_SHIFTS)), *range(-1, -min(len(begin), _MOST_SHIFTS), -1)],
        np.int64,
    )
    # Steps of a host follow one another, so that few of one host overlap each of the other: only these pairs
    # are looked at.
    ordered = all(bool((np.diff(times) >= 0).all()) for times in (begin, end, other_begin, other_end))
    first = np.searchsorted(other_end, begin) if ordered else np.zeros(len(begin), np.int64)
    beyond = np.searchsorted(other_begin, end) if ordered else np.full(len(begin), len(other_begin))
    n_pairs = np.maximum(beyond - first, 0)
    overlap = np.zeros(len(begin) + len(other_begin), np.int64)
    for rows in _bounded(n_pairs):
        step = np.repeat(np.arange(rows.start, rows.stop), n_pairs[rows])
        before = np.cumsum(n_pairs[rows]) - n_pairs[rows]
        other = np.arange(len(step)) + np.repeat(first[rows] - before, n_pairs[rows])
        shared = np.minimum(end[step], other_end[other]) - np.maximum(begin[step], other_begin[other])
        np.add.at(overlap, other - step + len(begin), np.maximum(shared, 0))
    return int(shifts[overlap[shifts + len(begin)].argmax()])


def _bounded(n_pairs: Int64s) -> list[slice]:
    """Runs of rows with at most some millions of pairs each, or of a single row."""
    total = np.cumsum(n_pairs)
    cuts = [0]
    while cuts[-1] < len(n_pairs):
        before = int(total[cuts[-1] - 1]) if cuts[-1] else 0
        cuts.append(max(cuts[-1] + 1, int(np.searchsorted(total, before + _MOST_PAIRS, side="right"))))
    return [slice(a, b) for a, b in itertools.pairwise(cuts)]


def sum_hardware(parts: Sequence[Hardware]) -> Hardware:
    """Devices of all hosts; name and peaks are those of the first host that has devices, replicas those of
    the largest program.
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
