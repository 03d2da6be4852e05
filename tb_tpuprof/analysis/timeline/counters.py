"""Samples of counters → as many as a screen can show: the lowest, the highest and the last value of every two
pixels; and the counters' units.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_KEPT_PER_BUCKET = 3
# Units by words in the names of counters, in order of precedence.
_UNITS = (
    (re.compile(r"(?<![a-z])(pct|percent)(?![a-z])|%", re.IGNORECASE), "%"),
    (re.compile(r"bytes.*(per_second|per second|/s)", re.IGNORECASE), "bytes_per_s"),
    (re.compile(r"bytes", re.IGNORECASE), "bytes"),
    (re.compile(r"(?<![a-z])watts?(?![a-z])", re.IGNORECASE), "W"),
    (re.compile(r"(?<![a-z])joules?(?![a-z])|_energy_j\b", re.IGNORECASE), "J"),
)
# Units in brackets at a name's end, and their canonical form.
_IN_BRACKETS = re.compile(r"\s[(\[]([^()\[\]]{1,12})[)\]]\s*$")
_BRACKET_UNITS = {
    "%": "%",
    "percent": "%",
    "b": "bytes",
    "byte": "bytes",
    "bytes": "bytes",
    "b/s": "bytes_per_s",
    "bytes/s": "bytes_per_s",
    **{
        text.lower(): text
        for text in (
            "KB",
            "MB",
            "GB",
            "KiB",
            "MiB",
            "GiB",
            "KB/s",
            "MB/s",
            "GB/s",
            "GiB/s",
            "W",
            "mW",
            "J",
            "mJ",
            "Hz",
            "kHz",
            "MHz",
            "GHz",
            "ns",
            "µs",
            "us",
            "ms",
            "s",
            "cycles",
            "°C",
            "V",
            "mV",
            "A",
            "GFLOP/s",
            "TFLOP/s",
        )
    },
}


@dataclass(frozen=True)
class CounterRanges:
    """The lowest and the highest value of each counter, NaN for one without samples."""

    lowest: Floats
    highest: Floats


def counter_samples(
    trace: Trace, counter: int, start_ps: int, end_ps: int, pixel_ps: int
) -> tuple[Int64s, Floats]:
    """(times in ps, values) of a counter in a window: the sample that holds at its start, then those within
    it.

    If two pixels contain more samples than can be seen, only the lowest, the highest and the last of them are
    kept:

        samples   · :·.: · ·        a value holds until the next sample
        kept      · :  : · ·
    """
    first = int(trace.counters["first_sample"][counter])
    last = first + int(trace.counters["n_samples"][counter])
    times, values = trace.samples["time_ps"][first:last], trace.samples["value"][first:last]
    low, high = np.searchsorted(times, [start_ps, end_ps])
    low = max(int(low) - 1, 0) if low == len(times) or times[low] > start_ps else int(low)
    times, values = times[low:high], values[low:high]
    bucket = (times - start_ps) // (2 * pixel_ps)  # the sample that holds at the start has its own bucket
    is_first = np.append(True, bucket[1:] != bucket[:-1])[: len(bucket)]
    begins = np.flatnonzero(is_first)
    if len(times) <= _KEPT_PER_BUCKET * len(begins):
        return times, values
    group = np.cumsum(is_first) - 1
    ends = np.append(begins[1:], len(times)) - 1
    extremes = [
        _first_equal(values, extreme.reduceat(values, begins), group) for extreme in (np.minimum, np.maximum)
    ]
    samples = np.unique(np.concatenate(([0], *extremes, ends)))
    return times[samples], values[samples]


def _first_equal(values: Floats, group_value: Floats, group: Int64s) -> npt.NDArray[np.intp]:
    """The first position in each group with the value `group_value[group]`."""
    matching = np.flatnonzero(values == group_value[group])
    first: npt.NDArray[np.intp] = matching[np.append(True, group[matching][1:] != group[matching][:-1])]
    return first


def counter_of(trace: Trace, line: int) -> int:
    """The counter (row of `counters`) that a line shows, -1 for a line of events."""
    number = line - len(trace.lines)
    return number if 0 <= number < len(trace.counters) else -1


def counter_name(trace: Trace, counter: int) -> str:
    """A counter's name with its series, if it has several."""
    series = trace.strings.get(int(trace.counters["series"][counter]))
    name = trace.strings.get(int(trace.counters["name"][counter]))
    return f"{name}: {series}" if series else name


@once
def counter_ranges(trace: Trace) -> CounterRanges:
    """Ranges over the whole trace."""
    n = trace.counters["n_samples"]
    lowest, highest = (np.full(len(n), np.nan) for _ in range(2))
    with_samples = np.flatnonzero(n > 0)
    if len(with_samples):
        begins = trace.counters["first_sample"][with_samples]
        lowest[with_samples] = np.minimum.reduceat(trace.samples["value"], begins)
        highest[with_samples] = np.maximum.reduceat(trace.samples["value"], begins)
    return CounterRanges(lowest, highest)


def counter_unit(name: str) -> str:
    """The unit in a counter's name: `bytes`, `bytes_per_s`, or the unit as displayed (`%`, `W`, `GB/s`);
    empty if there is none.
    """
    bracket = _IN_BRACKETS.search(name)
    if bracket and bracket[1].strip().lower() in _BRACKET_UNITS:
        return _BRACKET_UNITS[bracket[1].strip().lower()]
    return next((unit for pattern, unit in _UNITS if pattern.search(name)), "")


def unit_of(trace: Trace, counter: int) -> str:
    """The unit of a counter's values, by its name or else by its series' name."""
    columns = (trace.counters[column][counter] for column in ("name", "series"))
    return next(
        (unit for unit in (counter_unit(trace.strings.get(int(text))) for text in columns) if unit), ""
    )
