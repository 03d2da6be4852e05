"""PyTorch's DataLoader in a host's steps → how long they wait for it, how it loads, and what to change.

    step's thread     ├ __next__ ──────────┤├ .to("cuda") ┤├ launches …
    kernels        ▒▒▒▒▒▒▒▒                                    ▒▒▒▒▒▒▒▒▒
    copies                                   ▒▒▒▒
    waiting                ════════════             the fetch while no kernel runs
    waiting for copies                       ════   copies to the device while no kernel runs

Both are parts of the step's breakdown, and no change gains more than its part.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.charging import union_ps
from tb_tpuprof.analysis.events.frameworks import TORCH_WORKERS
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.names import is_fetch
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import events_of
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.gpu import stream_events
from tb_tpuprof.analysis.steps.pytorch import Windows, loader_events, windows
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_fraction, format_time

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
Mode = Literal["in_process", "workers", "unknown"]
MATTERS = 0.01  # of the steps' time, from which a change is listed
MOST_WORKERS = 64  # more are not suggested
_FEWEST_FETCHES = 8  # from which one of them can be an outlier
_OUTLIER = 0.8  # of all fetching, in one fetch beyond the median
_IN_PROCESS = "_SingleProcessDataLoaderIter"
_PIN = "aten::pin_memory"
_PAGEABLE = re.compile(r"memcpy ?h(?:to|2)d \(pageable -> .*", re.IGNORECASE)
_PINNED = re.compile(r"memcpy ?h(?:to|2)d \(pinned -> .*", re.IGNORECASE)


@dataclass(frozen=True)
class Copies:
    """Copies to the device that begin in the steps: their number and time."""

    n: int
    time_ps: int


@dataclass(frozen=True)
class LoaderUse:
    """The data loader in a host's displayed steps; times are of all these steps together.

    `waiting_ps`: the part of `fetch_ps` that the steps' breakdown counts as waiting; `longest_ps`,
    `median_ps`: of single fetches. `copy_wait_ps`: copies to the device while nothing else ran. `pinning_ps`:
    pinning of memory on the steps' own threads, outside fetches and while no kernel ran. (PyTorch records no
    operators of the thread that `pin_memory=True` starts.)
    """

    host: str
    name: str
    mode: Mode
    n_steps: int
    steps_ps: int
    n_fetches: int
    fetch_ps: int
    waiting_ps: int
    longest_ps: int
    median_ps: int
    pageable: Copies
    pinned: Copies
    copy_wait_ps: int
    pinning_ps: int

    @property
    def pageable_share(self) -> float:
        """Share of the time of copies with a known source that are from pageable memory."""
        both = self.pageable.time_ps + self.pinned.time_ps
        return self.pageable.time_ps / both if both else 0.0


@dataclass(frozen=True)
class Change:
    """A change of the loader: what to do, why, and what it gains at most in each step of the host."""

    host: str
    text: str
    why: str
    gain_ps: float
    gain_fraction: float


@once
def loader_use(trace: Trace) -> LoaderUse | None:
    """The loader in the displayed steps; None if the trace is not PyTorch's or has no fetch in them."""
    markers, shown = windows(trace), steps(trace)
    rows = np.flatnonzero(np.isin(markers.group, shown.number))
    markers = Windows(markers.row[rows], markers.group[rows], markers.start[rows], markers.end[rows])
    fetches = _in_steps(trace, loader_events(trace), markers)
    if not len(fetches):
        return None
    time, name = _times_of_fetches(trace, fetches)
    names = metadata_names(trace)
    kernels, copies = _stream_rows(trace)
    copies = _in_steps(trace, copies, markers)
    pins = _in_steps(trace, _pins(trace), markers)
    pins = pins[np.isin(trace.event_line[pins], trace.event_line[markers.row])]
    waiting = sum(wait.total_ps for wait in shown.waits if is_fetch(wait.name))
    fetch_ps = union_ps(*_span(trace, fetches))
    return LoaderUse(
        trace.info.host,
        name,
        "in_process" if _IN_PROCESS in name else "workers" if TORCH_WORKERS in name else "unknown",
        len(shown),
        int(shown.duration_ps.sum()),
        len(time),
        fetch_ps,
        min(waiting, fetch_ps),
        int(time.max()),
        int(np.median(time)),
        _copies(trace, copies, names, _PAGEABLE),
        _copies(trace, copies, names, _PINNED),
        int(shown.class_ps[:, TimeClass.HOST_TO_DEVICE].sum()),
        _exposed(trace, pins, np.concatenate((kernels, fetches))),
    )


def _in_steps(trace: Trace, rows: Rows, markers: Windows) -> Rows:
    """The events that begin in one of the windows, which overlap if several threads have steps."""
    start = trace.events["start_ps"][rows]
    latest_end = np.append(np.iinfo(np.int64).min, np.maximum.accumulate(markers.end))
    return rows[start < latest_end[np.searchsorted(markers.start, start, side="right")]]


def _span(trace: Trace, rows: Rows) -> tuple[Int64s, Int64s]:
    start = trace.events["start_ps"][rows].astype(np.int64)
    return start, start + trace.events["duration_ps"][rows]


def _times_of_fetches(trace: Trace, rows: Rows) -> tuple[Int64s, str]:
    """The time of each outermost fetch (PyTorch's own event and frames of its loader enclose each other), and
    the name that accounts for most of the time.
    """
    start, end = _span(trace, rows)
    order = np.lexsort((-end, start))
    rows, start, end = rows[order], start[order], end[order]
    latest = np.maximum.accumulate(end)
    is_outermost = np.append(True, start[1:] >= latest[:-1])
    metadata = trace.events["metadata"][rows]
    most = int(np.bincount(metadata, weights=end - start).argmax())
    return (end - start)[is_outermost], trace.strings.get(int(trace.metadata["name"][most]))


def _stream_rows(trace: Trace) -> tuple[Rows, Rows]:
    """(kernels and other work, copies to the device) on all streams."""
    rows = np.concatenate(
        [np.empty(0, np.intp), *(stream_events(trace, plane) for plane in planes(trace).gpus)]
    )
    is_copy = np.array(
        [bool(_PAGEABLE.fullmatch(name) or _PINNED.fullmatch(name)) for name in metadata_names(trace)],
        np.bool_,
    )
    on_copy = is_copy[trace.events["metadata"][rows]]
    return rows[~on_copy], rows[on_copy]


def _copies(trace: Trace, rows: Rows, names: Sequence[str], pattern: re.Pattern[str]) -> Copies:
    metadata = trace.events["metadata"][rows]
    kinds = [row for row in np.unique(metadata).tolist() if pattern.fullmatch(names[row])]
    chosen = rows[np.isin(metadata, kinds)]
    return Copies(len(chosen), int(trace.events["duration_ps"][chosen].sum()))


def _pins(trace: Trace) -> Rows:
    """Operations that copy a batch into pinned memory."""
    is_pin = np.array([name == _PIN for name in metadata_names(trace)], np.bool_)
    return events_of(trace, is_pin)


def _exposed(trace: Trace, rows: Rows, covering: Rows) -> int:
    """Time of events while none of others run."""
    if not len(rows):
        return 0
    start, end = _span(trace, rows)
    begin, stop = _span(trace, covering)
    return union_ps(np.append(start, begin), np.append(end, stop)) - union_ps(begin, stop)


def loader_changes(use: LoaderUse) -> tuple[Change, ...]:
    """What to change on a host, the largest gain first. Gains of the loader add up to at most its waiting."""
    changes = [*_faster_loading(use), *_faster_copies(use)]
    return tuple(sorted(changes, key=lambda change: -change.gain_ps))


def _change(use: LoaderUse, text: str, why: str, gain_ps: float) -> list[Change]:
    """The change, if it matters; `gain_ps` is that of all steps."""
    if gain_ps < MATTERS * use.steps_ps or not use.steps_ps:
        return []
    return [Change(use.host, text, why, gain_ps / use.n_steps, gain_ps / use.steps_ps)]


def _faster_loading(use: LoaderUse) -> list[Change]:
    waiting, rest_ps = use.waiting_ps, max(1, use.steps_ps - use.waiting_ps)
    if use.mode == "in_process":
        n = math.ceil(use.fetch_ps / rest_ps)
        each = (
            f"A batch takes {format_time(use.fetch_ps / use.n_fetches)} to load, on the thread that trains; "
            f"the rest of a step takes {format_time(rest_ps / use.n_steps)}"
        )
        if n > MOST_WORKERS:
            text = "Load in worker processes (`num_workers`), and make loading a batch much cheaper"
            why = f"{each}: {n:,} workers would be needed to keep up"
        else:
            workers = f"`DataLoader(num_workers={n}, persistent_workers=True)`"
            text = f"Load in worker processes: {workers}, or more"
            why = f"{each}: {n:,} worker{'' if n == 1 else 's'} can keep up, if as many processors are free"
        return _change(use, text, f"{why}.", waiting)
    if use.mode == "unknown":
        typical = f"A fetch takes {format_time(use.median_ps)} (median)"
        why = f"{typical}; the trace does not show where batches are made."
        return _change(use, "Load in worker processes, or in more of them (`num_workers`)", why, waiting)
    changes = []
    burst_ps = min(use.longest_ps - use.median_ps, waiting)
    if use.n_fetches >= _FEWEST_FETCHES and burst_ps >= _OUTLIER * use.fetch_ps:
        changes += _change(
            use,
            "If an epoch begins at the longest fetch, keep the workers: `persistent_workers=True`; else let "
            "them work further ahead: a larger `prefetch_factor`, or more `num_workers`",
            f"One of {use.n_fetches:,} fetches took {format_time(use.longest_ps)}, the median is "
            f"{format_time(use.median_ps)}: workers were starting, or none had its batch ready.",
            burst_ps,
        )
        waiting -= burst_ps
    factor = use.steps_ps / max(1, use.steps_ps - waiting)
    changes += _change(
        use,
        f"Use {factor:.1f} times as many `num_workers`, or make loading cheaper (decoding, transforms, "
        "storage)",
        f"The workers deliver a batch every {format_time(use.steps_ps / use.n_fetches)}; without waiting, "
        f"the steps would take one every {format_time((use.steps_ps - waiting) / use.n_fetches)}.",
        waiting,
    )
    return changes


def _faster_copies(use: LoaderUse) -> list[Change]:
    pageable_ps = use.copy_wait_ps * use.pageable_share
    changes = _change(
        use,
        "Copy from pinned memory: `DataLoader(pin_memory=True)` and `.to(device, non_blocking=True)`",
        f"{_n_copies(use.pageable.n)} from pageable memory took {format_time(use.pageable.time_ps)}, during "
        "which the host waits, too.",
        pageable_ps,
    )
    if use.pinned.n:
        changes += _change(
            use,
            "Copy the next batch during the step: `non_blocking=True`, on a stream of its own",
            f"{_n_copies(use.pinned.n)} from pinned memory took {format_time(use.pinned.time_ps)}, partly "
            "while no kernel ran.",
            use.copy_wait_ps - pageable_ps,
        )
    return changes + _change(
        use,
        "Pin batches in the loader's own thread: `DataLoader(pin_memory=True)` with workers, and no "
        "`.pin_memory()` in the loop",
        "The thread that trains pins memory while no kernel runs: "
        f"{format_fraction(use.pinning_ps / max(1, use.steps_ps))} of the steps.",
        use.pinning_ps,
    )


def _n_copies(n: int) -> str:
    return "1 copy" if n == 1 else f"{n:,} copies"
