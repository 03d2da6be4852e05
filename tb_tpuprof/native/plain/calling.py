"""Plain twin of `compiled/calling.py`: the same names, arguments and results."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Events = tuple[Int64s, Int64s, npt.NDArray[np.uint8], Int64s]
Windows = tuple[Int64s, Int64s]
Stretches = tuple[Int64s, Int64s, Int32s, Int32s, Int32s]


def contexts(
    parent: Int32s, name: Int32s, mark: npt.NDArray[np.uint16] | None = None
) -> tuple[Int32s, Int32s]:
    """(number of each event's context, first event of each context). Events with the same names and marks on
    the way to their roots share a context.

        f ──────────────────     0
          g ─────  g ─────       1, 1       the same function, called by the same one
           h ──     k ──         2, 3
    """
    numbers: dict[tuple[int, tuple[int, float]], int] = {}
    context_of_event: list[int] = []
    first: list[int] = []
    labels = zip(name.tolist(), np.zeros(len(name)).tolist() if mark is None else mark.tolist(), strict=True)
    for i, (above, label) in enumerate(zip(parent.tolist(), labels, strict=True)):
        key = context_of_event[above] if 0 <= above < i else -1, label
        if key not in numbers:
            numbers[key] = len(numbers)
            first.append(i)
        context_of_event.append(numbers[key])
    return np.array(context_of_event, np.int32), np.array(first, np.int32)


def stretches(
    start: Int64s,
    duration: Int64s,
    parent: Int32s,
    code: tuple[Int32s, Int32s],
    windows: Windows,
    least: int = 1,
) -> Stretches:
    """Stretches of time with a constant code of the innermost event: (start, end, window, first event, last
    event) of each.

    Events of one line, sorted by (start, -duration), with their parents. `code`: the context of each event,
    and the code of each context; negative codes have no stretches. `windows`: starts and ends, ascending and
    disjoint; a stretch is within one of them. Stretches shorter than `least` are left out.

            f (code 0)   ├──────────────────┤
            g (code 1)      ├──┤├──┤
            stretches    000111111100000000000        of f, of both calls of g, of f
    """
    begins, ends, parents = start.tolist(), (start + duration).tolist(), parent.tolist()
    codes = code[1][code[0]].tolist() if len(code[0]) else []
    spans = list(zip(windows[0].tolist(), windows[1].tolist(), strict=True))
    rows: list[list[int]] = []
    now, top = 0, -1
    for i in range(len(begins) + 1):
        if i < len(begins) and ends[i] <= begins[i]:
            continue
        until = begins[i] if i < len(begins) else 2**63 - 1
        while top >= 0 and now < until:
            if min(ends[top], until) > now:
                _add(rows, now, min(ends[top], until), (codes[top], top), spans)
                now = min(ends[top], until)
            top = parents[top]
        now, top = max(now, until), i
    table = np.array([stretch for stretch in rows if stretch[1] - stretch[0] >= least], np.int64).reshape(
        -1, 6
    )
    return table[:, 0], table[:, 1], *(table[:, i].astype(np.int32) for i in (2, 3, 4))  # type: ignore[return-value]


def _add(
    rows: list[list[int]], begin: int, end: int, code_and_event: tuple[int, int], spans: list[tuple[int, int]]
) -> None:
    code, event = code_and_event
    for number, (window_start, window_end) in enumerate(spans):
        left, right = max(begin, window_start), min(end, window_end)
        if code < 0 or left >= right:
            continue
        if rows and rows[-1][1] == left and rows[-1][2] == number and rows[-1][5] == code:
            rows[-1][1], rows[-1][4] = right, event
        else:
            rows.append([left, right, number, event, event, code])


def own_times(
    start: Int64s, duration: Int64s, parent: Int32s, context: Int32s, windows: Windows, n_contexts: int
) -> Int64s:
    """int64[2, contexts]: the own time of each context's events within the windows (the time in which no
    event inside them runs), and the number of its events that overlap a window; an event without duration
    counts as one unit long.

    Events of one line, sorted by (start, -duration), with their parents and contexts. `windows`: starts and
    ends, ascending and disjoint. The own times of all contexts add up to the time that the line's events
    cover within the windows.
    """
    sums = np.zeros((2, n_contexts), np.int64)
    codes = np.arange(n_contexts, dtype=np.int32)
    begins, ends, _window, event, _last = stretches(start, duration, parent, (context, codes), windows)
    for begin, end, owner in zip(begins.tolist(), ends.tolist(), event.tolist(), strict=True):
        sums[0, context[owner]] += end - begin
    spans = list(zip(windows[0].tolist(), windows[1].tolist(), strict=True))
    columns = zip(start.tolist(), (start + np.maximum(duration, 1)).tolist(), context.tolist(), strict=True)
    for begin, end, number in columns:
        sums[1, number] += any(opens < end and begin < closes for opens, closes in spans)
    return sums


def summed_up(above: Int32s, values: npt.NDArray[np.int64]) -> Int64s:
    """Sums over each node and all nodes below it, int64[rows, nodes]. `above`: the node above each, which has
    a lower number; -1 for none.
    """
    sums = np.array(values, np.int64)
    for node in range(len(above) - 1, -1, -1):
        if 0 <= above[node] < node:
            sums[:, above[node]] += sums[:, node]
    return sums


def repeats(above: Int32s, name: Int32s, n_names: int) -> npt.NDArray[np.bool_]:
    """Whether each node is below another of the same name. `above`: the node above each, which has a lower
    number, -1 for none; `name`: numbers below `n_names`.

        f            no
        └ g          no
          └ f        yes: a recursive call
    """
    around: list[frozenset[int]] = []
    result = np.zeros(len(above), np.bool_)
    for i, (node, own) in enumerate(zip(above.tolist(), name.tolist(), strict=True)):
        outside = around[node] if 0 <= node < i else frozenset()
        result[i] = own in outside
        around.append(outside | {own})
    return result


def charged(
    events: Events,
    order: Int64s,
    windows: Windows,
    time: npt.NDArray[np.int64],
    thread: tuple[tuple[Any, ...], Int64s] | tuple[()] = (),
) -> Int64s:
    """Charges each step's time to the highest class active at each moment, into `time` [steps, classes];
    class 0 stays at 0.

    `events`: start, end, class and step of each; `order` sorts them by start. `windows`: starts and ends of
    the steps, to which their events are clipped. At most 256 classes; the run time depends on the number of
    events, not of classes. `thread`: the arguments of `stretches`, whose results are charged as well (their
    codes are classes), and the step of each of their windows. Returns [3, classes]: the number of events of
    each class, and start and end of the longest one, the earliest of equals.
    """
    columns = (column[order].tolist() for column in events)
    first, last = (column.tolist() for column in windows)
    rows = list(zip(*columns, strict=True))
    if thread:
        begins, ends, window, event, _ = stretches(*thread[0])
        context, codes = thread[0][3]
        rows += zip(
            begins.tolist(),
            ends.tolist(),
            codes[context[event]].tolist(),
            thread[1][window].tolist(),
            strict=True,
        )
    time[:] = 0
    longest = np.zeros((3, time.shape[1]), np.int64)
    spans: list[list[tuple[int, int, int]]] = [[] for _ in first]
    for start, end, klass, step in sorted(rows, key=lambda row: row[0]):
        k = min(klass, time.shape[1] - 1)
        if k and max(start, first[step]) < min(end, last[step]):
            spans[step].append((max(start, first[step]), min(end, last[step]), k))
            longest[0, k] += 1
            if end - start > longest[2, k] - longest[1, k]:
                longest[1:, k] = start, end
    for step, step_spans in enumerate(spans):
        edges = sorted({edge for begin, stop, _ in step_spans for edge in (begin, stop)})
        for begin, stop in itertools.pairwise(edges):
            highest = max(
                (klass for left, right, klass in step_spans if left <= begin and stop <= right), default=0
            )
            time[step, highest] += stop - begin if highest else 0
    return longest
