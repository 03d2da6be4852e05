"""Moments that all hosts of a job share → the offset of each host's clock, and its uncertainty.

host A    ───▏all-reduce▕──────▏all-reduce▕───      A collective ends on all hosts at the same time, so its
host B     ────▏all-reduce▕──────▏all-reduce▕──     ends differ only by the clocks. Steps end only at about
               └ lag ┘                              the same time: they reveal clocks that are far apart.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import line_events, planes
from tb_tpuprof.analysis.events.stat_rows import first_ints, values_at
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.native import joined, rows_of
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_time

Int64s = npt.NDArray[np.int64]
_COLLECTIVE = re.compile(rb"all-?reduce|all-?gather|all-?to-?all|reduce-?scatter|nccl|rccl")
_PARTS = (b"reduce", b"gather", b"to-all", b"toall", b"ccl")  # each collective's name contains one
_FEWEST = 3  # shared moments that are needed
_MOST = 4096
_TO_DEVIATION = 1.4826  # median absolute deviation × this = standard deviation, for a normal distribution
_LEAST_PS = 1_000_000.0
_IN_STEP = 0.25  # fraction of a step by which the lags of hosts that wait for each other may spread
# Real clocks are not a minute off: captures that far apart were made at different times …
_APART_PS = 60 * 10**12
_TOGETHER_PS = 100_000_000  # … unless their collectives end within this time of each other in every step
_SURE = 2.0  # an offset counts if it exceeds its uncertainty by this factor


@dataclass(frozen=True)
class Moments:
    """Ends of shared events, by the number of the step (ascending, as annotated by the user)."""

    number: Int64s
    end_ps: Int64s


@dataclass(frozen=True)
class ClockMarks:
    """The evidence for one host's clock. `start_ns`: the clock at the trace's 0; `collectives`: the last one
    of each step.
    """

    start_ns: int
    duration_ps: int
    steps: Moments
    collectives: Moments


@dataclass(frozen=True)
class ClockOffset:
    """`offset_ps`: how far the clock is ahead of the others. `by`: collectives, steps, or empty if there is
    no evidence.

    `uncertainty_ps`: for collectives, the spread of the offset between moments (a standard deviation); for
    steps, at least half of the longest capture. `counts`: whether the offset clearly exceeds its uncertainty.
    """

    offset_ps: int = 0
    uncertainty_ps: int = 0
    by: str = ""
    n_moments: int = 0

    @property
    def is_apart(self) -> bool:
        """Whether the capture was made at another time: if clocks differ by minutes or years, equal step
        numbers prove nothing.
        """
        return bool(self.by) and abs(self.offset_ps) > _APART_PS and self.uncertainty_ps > _TOGETHER_PS

    @property
    def counts(self) -> bool:
        """Whether timestamps should be corrected by the offset."""
        return bool(self.by) and not self.is_apart and abs(self.offset_ps) > _SURE * self.uncertainty_ps

    @property
    def correction_ns(self) -> int:
        """Nanoseconds to add to the host's clock; 0 if the offset is not certain."""
        return -round(self.offset_ps / 1000) if self.counts else 0


@once
def clock_marks(trace: Trace) -> ClockMarks:
    """The moments of one host: annotated steps (stat `step_num`; only roots if there are any), and the
    collectives in them.
    """
    owner, number = first_ints(trace, "step_num")
    is_root = values_at(owner, *first_ints(trace, "_r"), 0) > 0
    if is_root.any():
        owner, number = owner[is_root], number[is_root]
    owner = owner.astype(np.intp)
    start, duration = trace.events["start_ps"], trace.events["duration_ps"]
    steps = _last(number.astype(np.int64), start[owner] + duration[owner])
    collective = _collectives(trace)
    if not len(collective) or not len(owner):
        return ClockMarks(
            trace.info.start_ns, trace.duration_ps, steps, _last(np.empty(0, np.int64), np.empty(0, np.int64))
        )
    group = groups(trace).group
    group_ids, first = np.unique(group[owner], return_index=True)
    index = np.minimum(np.searchsorted(group_ids, group[collective]), len(group_ids) - 1)
    is_match = (group_ids[index] == group[collective]) & (group[collective] >= 0)
    numbers, collective = number[first][index][is_match].astype(np.int64), collective[is_match]
    return ClockMarks(
        trace.info.start_ns,
        trace.duration_ps,
        steps,
        _last(numbers, start[collective] + duration[collective]),
    )


def _collectives(trace: Trace) -> npt.NDArray[np.intp]:
    """Events of collectives on the first accelerator."""
    roles = planes(trace)
    devices = [*roles.tensor_cores, *roles.gpus][:1]
    if not devices:
        return np.empty(0, np.intp)
    spans = [line_events(trace, line) for line in trace.lines_of(devices).tolist()]
    metadata, names = trace.events["metadata"], trace.metadata["name"].astype(np.int64)
    is_used = np.zeros(len(names), np.bool_)
    for span in spans:
        is_used[metadata[span]] = True
    used = np.flatnonzero(is_used & (names >= 0))
    is_collective = np.zeros(len(names), np.uint8)
    is_collective[used] = _named_collectives(trace.strings, names[used])
    parts = (
        [span.start + rows_of(metadata[span], is_collective) for span in spans] if is_collective.any() else []
    )
    return np.concatenate([np.empty(0, np.intp), *parts])


def _named_collectives(strings: Strings, names: Int64s) -> npt.NDArray[np.bool_]:
    """For each of the strings `names`, whether it names a collective. Names may be long expressions, and
    there are many: only those that contain a typical part are searched with the regular expression.
    """
    blob, offsets = joined(strings.blob, strings.offsets[names], strings.sizes[names])
    text, bounds = blob.tobytes().lower(), offsets.tolist()
    result = np.zeros(len(names), np.bool_)
    for part in _PARTS:
        position = text.find(part)
        while position >= 0:
            row = bisect_right(bounds, position) - 1
            result[row] |= bool(_COLLECTIVE.search(text, bounds[row], bounds[row + 1]))
            position = text.find(part, bounds[row + 1])
    return result


def _last(number: Int64s, end_ps: Int64s) -> Moments:
    """The latest end for each step number, for the first few thousand numbers."""
    order = np.lexsort((end_ps, number))
    number, end_ps = number[order], end_ps[order]
    is_last = np.append(number[1:] != number[:-1], True)[: len(number)]
    return Moments(number[is_last][:_MOST], end_ps[is_last][:_MOST])


def clock_offsets(hosts: Sequence[ClockMarks]) -> tuple[ClockOffset, ...]:
    """The offset of each host from the host in the middle: the median of its lags at the moments that all
    hosts share.

    Hosts without such moments (coordinators, data workers) have no offset. Clock drift within the capture
    increases the spread of the lags.
    """
    for by in ("collectives", "steps"):
        moments: list[Moments] = [getattr(host, by) for host in hosts]
        with_moments = [i for i, part in enumerate(moments) if len(part.number) >= _FEWEST]
        if len(with_moments) < 2:
            continue
        shared = moments[with_moments[0]].number
        for i in with_moments[1:]:
            shared = np.intersect1d(shared, moments[i].number, assume_unique=True)
        if len(shared) >= _FEWEST:
            offsets = _offsets(
                [hosts[i] for i in with_moments], [moments[i] for i in with_moments], shared, by
            )
            if not offsets:
                continue
            return tuple(
                offsets[with_moments.index(i)] if i in with_moments else ClockOffset()
                for i in range(len(hosts))
            )
    return tuple(ClockOffset() for _ in hosts)


def _offsets(
    hosts: Sequence[ClockMarks], moments: Sequence[Moments], shared: Int64s, by: str
) -> list[ClockOffset]:
    """Offsets of hosts that all have the shared moments; empty if the hosts do not run in lockstep."""
    zero = min(host.start_ns for host in hosts)
    ends = [part.end_ps[np.searchsorted(part.number, shared)].astype(np.float64) for part in moments]
    times = np.array([end + (host.start_ns - zero) * 1000.0 for host, end in zip(hosts, ends, strict=True)])
    lags = times - np.median(times, axis=0)
    offset = np.median(lags, axis=1)
    spread = np.median(np.abs(lags - offset[:, None]), axis=1) * _TO_DEVIATION
    if float(spread.max()) > float(np.median(np.diff(times, axis=1))) * _IN_STEP:
        return []
    least = _LEAST_PS if by == "collectives" else max(host.duration_ps for host in hosts) / _SURE
    offset -= np.sort(offset)[(len(offset) - 1) // 2]
    rows = zip(offset.tolist(), np.maximum(spread, least).tolist(), strict=True)
    return [ClockOffset(round(ahead), round(unsure), by, len(shared)) for ahead, unsure in rows]


def clock_sentences(hosts: Sequence[str], offsets: Sequence[ClockOffset]) -> list[str]:
    """A sentence for each host whose clock was corrected."""
    sentences = []
    for host, offset in zip(hosts, offsets, strict=True):
        if offset.counts:
            side = "ahead of" if offset.offset_ps > 0 else "behind"
            difference = f"{format_time(abs(offset.offset_ps))} ± {format_time(offset.uncertainty_ps)}"
            evidence = (
                f"{offset.by} in {offset.n_moments} steps"
                if offset.by == "collectives"
                else f"the ends of {offset.n_moments} steps"
            )
            sentences.append(
                f"The clock of {host} is {difference} {side} the others (from {evidence}); "
                "its timestamps were corrected."
            )
    return sentences


def apart_sentences(hosts: Sequence[str], offsets: Sequence[ClockOffset]) -> list[str]:
    """A sentence for each host that was captured at a different time than the others."""
    return [
        f"{host} was captured {long_time(abs(offset.offset_ps))} "
        f"{'after' if offset.offset_ps > 0 else 'before'} the others. "
        "Captures that do not overlap are neither aligned nor averaged: select a single host."
        for host, offset in zip(hosts, offsets, strict=True)
        if offset.is_apart
    ]


def long_time(time_ps: int) -> str:
    """A time between captures in days, hours, minutes or smaller units."""
    seconds = time_ps / 10**12
    for name, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {name}"
    return format_time(time_ps)
