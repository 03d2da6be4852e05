"""Samples of counters → as many as a screen can show: of two pixels the lowest, the highest and the last value."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_KEPT_PER_BUCKET = 3


def counter_samples(trace: Trace, counter: int, start_ps: int, end_ps: int, pixel_ps: int) -> tuple[Int64s, npt.NDArray[np.float64]]:
    """(times, values) of a counter in a window: the sample that holds at its start, then those within it.

    Where more samples than can be seen lie within two pixels, the lowest, the highest and the last of them are kept:

        samples   · :·.: · ·        a value holds until the next sample
        kept      · :  : · ·
    """
    first = int(trace.counters["first_sample"][counter])
    last = first + int(trace.counters["n_samples"][counter])
    times, values = trace.samples["time_ps"][first:last], trace.samples["value"][first:last]
    low, high = np.searchsorted(times, [start_ps, end_ps])
    low = max(int(low) - 1, 0) if low == len(times) or times[low] > start_ps else int(low)
    times, values = times[low:high], values[low:high]
    bucket = (times - start_ps) // (2 * pixel_ps)  # what holds at the start has a bucket of its own
    begins = np.flatnonzero(np.append(True, bucket[1:] != bucket[:-1])[: len(bucket)])
    if len(times) <= _KEPT_PER_BUCKET * len(begins):
        return times, values
    group = np.cumsum(np.isin(np.arange(len(times)), begins)) - 1
    by_value = np.lexsort((values, group))
    ends = np.append(begins[1:], len(times)) - 1
    kept = np.unique(np.concatenate(([0], by_value[begins], by_value[ends], ends)))
    return times[kept], values[kept]


def counter_name(trace: Trace, counter: int) -> str:
    """What a counter is called: its name, and its series where it has several."""
    series = trace.strings.get(int(trace.counters["series"][counter]))
    name = trace.strings.get(int(trace.counters["name"][counter]))
    return f"{name}: {series}" if series else name


def highest_value(trace: Trace, counter: int) -> float:
    """The largest value of a counter, NaN without samples."""
    first, n = int(trace.counters["first_sample"][counter]), int(trace.counters["n_samples"][counter])
    return float(trace.samples["value"][first : first + n].max()) if n else float("nan")
