"""Plain twin of `compiled/selection.py`: the same names, arguments and results."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]
Rows = npt.NDArray[np.int64]
Classes = npt.NDArray[np.uint8]


def ascends(values: Int32s) -> bool:
    """Whether each value is greater than the one before it."""
    return bool((values[1:] > values[:-1]).all())


def classes_of(metadata: Int32s, klass: Classes) -> Classes:
    """Class of each event: that of its metadata row, 0 for a row out of range."""
    is_valid = (metadata >= 0) & (metadata < len(klass))
    return (
        np.where(is_valid, klass[np.where(is_valid, metadata, 0)], 0).astype(np.uint8)
        if len(klass)
        else np.zeros(len(metadata), np.uint8)
    )


def rows_of(metadata: Int32s, wanted: Classes, dtype: type[np.int32] | type[np.int64] = np.int64) -> Rows:
    """Events whose metadata row is wanted (not 0), ascending."""
    return np.flatnonzero(classes_of(metadata, wanted)).astype(dtype)


def repeated(values: npt.NDArray[Any], counts: npt.NDArray[np.integer]) -> npt.NDArray[Any]:
    """Each value, of int32 or of one byte, as often as counted; like np.repeat, which however keeps the
    interpreter's lock all the while. Raises ValueError for values of another type, and unless there is a
    count of 0 or more for each.
    """
    if len(values) != len(counts) or (counts < 0).any():
        raise ValueError("a count of 0 or more is needed for each value")
    if values.dtype != np.int32 and values.dtype.itemsize != 1:
        raise ValueError("values are int32 or of one byte")
    return np.repeat(values, counts)


def outermost(klass: Classes, group: Int32s, parent: Int32s, limit: int) -> Rows:
    """Events that have a group and a class below the limit, and whose parent is not an event of the same
    group with the same or a higher class below the limit.

        class 1   ├───a────────────┤     a and c are returned: b adds nothing to a,
        class 1     ├─b──┤               c has a higher class
        class 2             ├─c──┤
    """
    eligible = np.flatnonzero((klass < limit) & (group >= 0))
    above = parent[eligible]
    has_parent = above >= 0
    parent_class = klass[above]
    hidden = (
        has_parent
        & (parent_class < limit)
        & (parent_class >= klass[eligible])
        & (group[above] == group[eligible])
    )
    rows: Rows = eligible[~hidden].astype(np.int64)
    return rows


def informative_hubs(
    ties: tuple[Int32s, Int32s, Int32s, Int32s], n_hubs: int, above: Int32s, heads: Classes
) -> npt.NDArray[np.bool_]:
    """For each hub, whether it ties events that are not adjacent in the call tree anyway.

    `ties`: producers, their hubs, consumers, their hubs. A hub with one producer and one consumer adds no
    information if the consumer is a child of the producer, or if both have the same parent (`above`) and the
    producer is not one of the `heads`.
    """
    producer, producer_hub, consumer, consumer_hub = ties
    cause, effect = np.zeros(n_hubs, np.int64), np.zeros(n_hubs, np.int64)
    cause[producer_hub], effect[consumer_hub] = producer, consumer
    single = (np.bincount(producer_hub, minlength=n_hubs) == 1) & (
        np.bincount(consumer_hub, minlength=n_hubs) == 1
    )
    are_siblings = (above[cause] == above[effect]) & (heads[cause] == 0)
    is_informative: npt.NDArray[np.bool_] = ~(single & (are_siblings | (above[effect] == cause)))
    return is_informative


def match(made: Rows, used: Rows, crowd: int) -> tuple[Int32s, Int32s, Int32s, Int32s, int] | None:
    """Producers and consumers with equal keys: (those of `made` that have a hub, their hubs, those of `used`,
    their hubs, number of hubs).

    A hub represents one key that both sides have and that does not occur `crowd` times or more on both sides;
    hubs are numbered by key.

            made   5 3 3 9        hub 0 is key 3, hub 1 is key 5
            used   3 5 5          (0 1 2 → 1 0 0), (0 1 2 → 0 1 1)

    Tracers count ids up from a few start values (such as a thread's number, shifted by 32 bits), so the keys
    are dense within each block of 2^32, and the compiled twin can count instead of sorting; it returns None
    if they are not dense.
    """
    keys, n_made = np.unique(made, return_counts=True)
    others, n_used = np.unique(used, return_counts=True)
    shared, made_index, used_index = np.intersect1d(keys, others, assume_unique=True, return_indices=True)
    shared = shared[(n_made[made_index] < crowd) | (n_used[used_index] < crowd)]
    columns: list[Int32s] = []
    for side in (made, used):
        rows = np.flatnonzero(np.isin(side, shared)).astype(np.int32)
        columns += [rows, np.searchsorted(shared, side[rows]).astype(np.int32)]
    return columns[0], columns[1], columns[2], columns[3], len(shared)


def look_up(owner: Int32s, value: Rows, rows: Int32s | Rows, missing: int) -> Rows:
    """The value of each row, the first of several, `missing` if it has none. `owner` ascends; ascending rows
    are fastest.

        owner   2 4 4 7      value   5 6 7 8      rows   1 4 7  →  missing 6 8
    """
    if not len(owner):
        return np.full(len(rows), missing, np.int64)
    index = np.minimum(np.searchsorted(owner, rows), len(owner) - 1)
    return np.where(owner[index] == rows, value[index], missing)


def find_ids(ordered: Rows, order: Rows, ids: Rows) -> Int32s:
    """The row of each id, -1 if there is none. `ordered` has the ids ascending, `order` their rows; the first
    of equal ids counts.

        ordered   3 5 5 9      order   2 0 3 1      ids   9 4 5  →  1 -1 0
    """
    if not len(ordered):
        return np.full(len(ids), -1, np.int32)
    index = np.minimum(np.searchsorted(ordered, ids), len(ordered) - 1)
    return np.where(ordered[index] == ids, order[index], -1).astype(np.int32)
