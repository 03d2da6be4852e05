"""Moments that all hosts of a job share → by how much each host's clock is off, and how well that is known.

host A    ───▏all-reduce▕──────▏all-reduce▕───      A collective ends on all hosts at once: what its ends
differ by, clocks do. host B     ────▏all-reduce▕──────▏all-reduce▕──     Steps end about together only: they
tell of clocks that are far apart.
               └ lag ┘
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
_PARTS = (b"reduce", b"gather", b"to-all", b"toall", b"ccl")  # each collective's name holds one
_FEWEST = 3  # moments that hosts must share
_MOST = 4096
_TO_DEVIATION = (
    1.4826  # the median absolute deviation of normally spread values, by this, is their standard deviation
)
_LEAST_PS = 1_000_000.0
_IN_STEP = 0.25  # of a step, by which lags may spread between hosts that wait for one another
_APART_PS = (
    60 * 10**12
)  # clocks in use are not a minute off: captures that far apart were made at different times …
_TOGETHER_PS = 100_000_000  # … unless their collectives end within this of one another, step by step
_SURE = 2.0  # times its uncertainty that an offset must be to count


@dataclass(frozen=True)
class Moments:
    """Ends of what hosts share, by the step's number (ascending, as the user annotated it)."""

    number: Int64s
    end_ps: Int64s


@dataclass(frozen=True)
class ClockMarks:
    """What one host's trace tells of its clock. `start_ns`: the clock at the trace's 0; `collectives`: each
    step's last one.
    """

    start_ns: int
    duration_ps: int
    steps: Moments
    collectives: Moments


@dataclass(frozen=True)
class ClockOffset:
    """`offset_ps`: what the clock is ahead of the others'. `by`: collectives, steps, or empty where nothing
    tells.

    `uncertainty_ps`: of collectives, how the offset spreads from one to the next (a standard deviation); of
    steps no less than half of the longest capture. `counts`: whether the offset is surely more than that.
    """

    offset_ps: int = 0
    uncertainty_ps: int = 0
    by: str = ""
    n_moments: int = 0

    @property
    def is_apart(self) -> bool:
        """Whether the capture was made at another time: steps of equal numbers prove nothing where clocks
        differ by minutes or years.
        """
        return bool(self.by) and abs(self.offset_ps) > _APART_PS and self.uncertainty_ps > _TOGETHER_PS

    @property
    def counts(self) -> bool:
        """Whether times should be moved by it."""
        return bool(self.by) and not self.is_apart and abs(self.offset_ps) > _SURE * self.uncertainty_ps

    @property
    def correction_ns(self) -> int:
        """What to add to the host's clock; 0 where the offset is not sure."""
        return -round(self.offset_ps / 1000) if self.counts else 0


@once
def clock_marks(trace: Trace) -> ClockMarks:
    """The moments of one host: annotated steps (stat `step_num`; roots where there are any), and the
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
    known, first = np.unique(group[owner], return_index=True)
    at = np.minimum(np.searchsorted(known, group[collective]), len(known) - 1)
    found = (known[at] == group[collective]) & (group[collective] >= 0)
    numbers, collective = number[first][at][found].astype(np.int64), collective[found]
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
    is_one = np.zeros(len(names), np.uint8)
    is_one[used] = _named_collectives(trace.strings, names[used])
    found = [span.start + rows_of(metadata[span], is_one) for span in spans] if is_one.any() else []
    return np.concatenate([np.empty(0, np.intp), *found])


def _named_collectives(strings: Strings, names: Int64s) -> npt.NDArray[np.bool_]:
    """Which strings name a collective. Names may be expressions, and there are many: only those that hold a
    part of one are looked into.
    """
    blob, offsets = joined(strings.blob, strings.offsets[names], strings.sizes[names])
    text, bounds = blob.tobytes().lower(), offsets.tolist()
    result = np.zeros(len(names), np.bool_)
    for part in _PARTS:
        at = text.find(part)
        while at >= 0:
            row = bisect_right(bounds, at) - 1
            result[row] |= bool(_COLLECTIVE.search(text, bounds[row], bounds[row + 1]))
            at = text.find(part, bounds[row + 1])
    return result


def _last(number: Int64s, end_ps: Int64s) -> Moments:
    """The latest end of each number, of the first few thousand numbers."""
    order = np.lexsort((end_ps, number))
    number, end_ps = number[order], end_ps[order]
    is_last = np.append(number[1:] != number[:-1], True)[: len(number)]
    return Moments(number[is_last][:_MOST], end_ps[is_last][:_MOST])


def clock_offsets(hosts: Sequence[ClockMarks]) -> tuple[ClockOffset, ...]:
    """The offset of each host against the one in the middle: the median of its lags at the moments that all
    hosts share.

    Hosts without such moments (coordinators, data workers) have none. Clocks that drift within the capture
    spread the lags.
    """
    for by in ("collectives", "steps"):
        moments: list[Moments] = [getattr(host, by) for host in hosts]
        given = [i for i, one in enumerate(moments) if len(one.number) >= _FEWEST]
        if len(given) < 2:
            continue
        shared = moments[given[0]].number
        for i in given[1:]:
            shared = np.intersect1d(shared, moments[i].number, assume_unique=True)
        if len(shared) >= _FEWEST:
            found = _offsets([hosts[i] for i in given], [moments[i] for i in given], shared, by)
            if not found:
                continue
            return tuple(found[given.index(i)] if i in given else ClockOffset() for i in range(len(hosts)))
    return tuple(ClockOffset() for _ in hosts)


def _offsets(
    hosts: Sequence[ClockMarks], moments: Sequence[Moments], shared: Int64s, by: str
) -> list[ClockOffset]:
    """Offsets of hosts that all have the shared moments; none where the hosts do not run in step."""
    zero = min(host.start_ns for host in hosts)
    ends = [one.end_ps[np.searchsorted(one.number, shared)].astype(np.float64) for one in moments]
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
    """A sentence for each host whose clock is off."""
    found = []
    for host, one in zip(hosts, offsets, strict=True):
        if one.counts:
            side = "ahead of" if one.offset_ps > 0 else "behind"
            off = f"{format_time(abs(one.offset_ps))} ± {format_time(one.uncertainty_ps)}"
            what = (
                f"{one.by} in {one.n_moments} steps"
                if one.by == "collectives"
                else f"the ends of {one.n_moments} steps"
            )
            found.append(
                f"The clock of {host} is {off} {side} the others', by {what}: its times are moved by that."
            )
    return found


def apart_sentences(hosts: Sequence[str], offsets: Sequence[ClockOffset]) -> list[str]:
    """A sentence for each host that was captured at another time than the others."""
    return [
        f"{host} was captured {_long_time(abs(one.offset_ps))} {'after' if one.offset_ps > 0 else 'before'} "
        "the others: "
        "captures that do not overlap are neither aligned nor averaged. Select one host to see it by itself."
        for host, one in zip(hosts, offsets, strict=True)
        if one.is_apart
    ]


def _long_time(time_ps: int) -> str:
    """A time between captures in a unit that people count it in."""
    seconds = time_ps / 10**12
    for name, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {name}"
    return format_time(time_ps)
