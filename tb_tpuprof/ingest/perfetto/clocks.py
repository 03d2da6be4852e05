"""Times of a Perfetto trace's packets, on one clock.

Each packet may have a clock of its own. Snapshots give the time of several clocks at one moment; a clock is
moved by the difference in the last snapshot before the packet. Clocks 64 to 127 belong to one sequence and
may count increments since the packet before.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from tb_tpuprof.ingest.perfetto.packets import (
    CLOCK,
    CLOCKS,
    DEFAULTS,
    TIMESTAMP,
    Bools,
    Ints,
    Packets,
    Spans,
    read_spans,
)
from tb_tpuprof.native import parts

_REALTIME, _BOOTTIME = 1, 6
_SCOPED = 64, 128  # clocks of one sequence
_ID, _TIME, _IS_INCREMENTAL, _UNIT_NS = 1, 2, 3, 4  # of a clock in a snapshot
_MOST_UNIT_NS = 10**9
_MOST_CLOCKS = 4096  # later ones are taken to agree with the others
MOST_NS = 2**61


@dataclass(frozen=True)
class Times:
    """Time of each packet in ns, valid where `is_timed`; since 1970 if the trace says how."""

    ns: Ints
    is_timed: Bools


@dataclass(frozen=True)
class _Snapshots:
    """A row per clock of a snapshot, in the file's order."""

    at: Ints  # place of the snapshot's packet in the file
    sequence: Ints
    clock: Ints
    ns: Ints
    is_incremental: Bools
    unit_ns: Ints

    def of(self, sequence: int, clock: int) -> Ints:
        """Rows of a clock; of a scoped one, those of its sequence."""
        is_own = (self.sequence == sequence) | ~_is_scoped(self.clock)
        return np.flatnonzero((self.clock == clock) & is_own)


def times_of(packets: Packets) -> Times:
    """The times of all packets."""
    stamp = packets.fields[TIMESTAMP]
    clock = _clock_of(packets)
    snapshots = _snapshots(packets)
    zero = _reference(snapshots, clock[stamp.is_number])
    is_timed = stamp.is_number & (np.abs(stamp.value) < MOST_NS)
    ns = np.where(is_timed, stamp.value, 0)
    group = np.where(_is_scoped(clock), packets.sequence, -1)
    order = np.lexsort((np.arange(len(packets)), group, clock))
    order = order[is_timed[order]]
    is_new = np.append(True, (np.diff(clock[order]) != 0) | (np.diff(group[order]) != 0))[: len(order)]
    bounds = np.append(np.flatnonzero(is_new), len(order)).tolist()
    for first, last in itertools.islice(itertools.pairwise(bounds), _MOST_CLOCKS):
        rows = order[first:last]
        own = snapshots.of(int(packets.sequence[rows[0]]), int(clock[rows[0]]))
        ns[rows] = _on_reference(ns[rows], packets.ordinal[rows], snapshots, own, zero)
    return Times(ns + _since_1970(snapshots, zero), is_timed & (np.abs(ns) < MOST_NS))


def _is_scoped(clock: Ints) -> Bools:
    return np.asarray((clock >= _SCOPED[0]) & (clock < _SCOPED[1]))


def _clock_of(packets: Packets) -> Ints:
    """Each packet's clock: its own, else the default of its generation, else the time since boot."""
    defaults = read_spans(packets.data, packets.fields[DEFAULTS], (CLOCK,))[CLOCK]
    latest = packets.latest(defaults.is_number)
    default = (
        np.where(latest >= 0, defaults.value[np.maximum(latest, 0)], _BOOTTIME) if len(packets) else latest
    )
    return np.where(packets.fields[CLOCK].is_number, packets.fields[CLOCK].value, default)


def _snapshots(packets: Packets) -> _Snapshots:
    rows = np.flatnonzero(packets.fields[CLOCKS].is_bytes)
    rows = rows[np.argsort(packets.ordinal[rows], kind="stable")]
    messages = packets.fields[CLOCKS].at(rows)
    offsets, start, size = parts(packets.data, messages.value, messages.size, 1)
    clocks = read_spans(packets.data, Spans(start, size), (_ID, _TIME, _IS_INCREMENTAL, _UNIT_NS))
    owner = np.repeat(rows, np.diff(offsets))
    unit_ns = np.clip(clocks[_UNIT_NS].numbers(1), 1, _MOST_UNIT_NS)
    time = clocks[_TIME].numbers()
    is_sound = np.abs(time) < MOST_NS // unit_ns
    return _Snapshots(
        packets.ordinal[owner][is_sound],
        packets.sequence[owner][is_sound],
        clocks[_ID].numbers(-1)[is_sound],
        (time * unit_ns)[is_sound],
        (clocks[_IS_INCREMENTAL].numbers() > 0)[is_sound],
        unit_ns[is_sound],
    )


def _reference(snapshots: _Snapshots, used: Ints) -> int:
    """The clock that all times are put on: since boot if snapshots have it, else the most used one."""
    if not len(used) or (snapshots.clock == _BOOTTIME).any():
        return _BOOTTIME
    clocks, count = np.unique(used, return_counts=True)
    return int(clocks[count.argmax()])


def _on_reference(stamp: Ints, at: Ints, snapshots: _Snapshots, own: Ints, reference: int) -> Ints:
    """Times in ns on the reference clock, of packets with one clock in the file's order."""
    if not len(own):
        return stamp
    place = (
        np.searchsorted(snapshots.at[own], at, side="right") - 1
    )  # of the last snapshot before each packet
    row = own[np.maximum(place, 0)]
    unit_ns = np.minimum(snapshots.unit_ns[row], MOST_NS // np.maximum(np.abs(stamp), 1))
    ns = stamp * unit_ns
    if snapshots.is_incremental[own[0]] and _is_scoped(snapshots.clock[own[:1]])[0]:
        total = np.cumsum(ns)
        first = np.searchsorted(place, place)  # the first packet after the same snapshot
        ns = snapshots.ns[row] + (total - total[first] + ns[first])
    other = np.flatnonzero(snapshots.clock == reference)
    if not len(other):
        return np.asarray(ns)
    pair = np.minimum(np.searchsorted(snapshots.at[other], snapshots.at[row]), len(other) - 1)
    has_both = snapshots.at[other[pair]] == snapshots.at[row]
    moved: Ints = ns + np.where(has_both, snapshots.ns[other[pair]] - snapshots.ns[row], 0)
    return moved


def _since_1970(snapshots: _Snapshots, reference: int) -> int:
    """ns to add to the reference clock, from the last snapshot that has both; 0 if none has."""
    ours, theirs = (np.flatnonzero(snapshots.clock == clock) for clock in (reference, _REALTIME))
    _, i, j = np.intersect1d(snapshots.at[ours], snapshots.at[theirs], return_indices=True)
    return int(snapshots.ns[theirs[j[-1]]] - snapshots.ns[ours[i[-1]]]) if len(i) else 0
