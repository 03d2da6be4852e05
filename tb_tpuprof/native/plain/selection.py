"""Plain twins of `selection.py`: the same names, arguments and results, for where no extension is built and
for tests.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]
Rows = npt.NDArray[np.int64]
Classes = npt.NDArray[np.uint8]


def ascends(values: Int32s) -> bool:
    """Whether each value is more than the one before it."""
    return bool((values[1:] > values[:-1]).all())


def classes_of(metadata: Int32s, klass: Classes) -> Classes:
    """Class of each event: that of its metadata row, 0 for a row out of range."""
    known = (metadata >= 0) & (metadata < len(klass))
    return (
        np.where(known, klass[np.where(known, metadata, 0)], 0).astype(np.uint8)
        if len(klass)
        else np.zeros(len(metadata), np.uint8)
    )


def rows_of(metadata: Int32s, wanted: Classes, dtype: type[np.int32] | type[np.int64] = np.int64) -> Rows:
    """Events whose metadata row is wanted (not 0), ascending."""
    return np.flatnonzero(classes_of(metadata, wanted)).astype(dtype)


def outermost(klass: Classes, group: Int32s, parent: Int32s, limit: int) -> Rows:
    """Events of a class below the limit, and of a group, that lie not directly inside one of this group and
    of such or a higher class.

    class 1   ├───a────────────┤     a and c are found: b adds nothing to a,
    class 1     ├─b──┤               c is of a higher class
    class 2             ├─c──┤
    """
    counted = np.flatnonzero((klass < limit) & (group >= 0))
    above = parent[counted]
    inside = above >= 0
    around = klass[above]
    hidden = inside & (around < limit) & (around >= klass[counted]) & (group[above] == group[counted])
    found: Rows = counted[~hidden].astype(np.int64)
    return found


def telling(
    ties: tuple[Int32s, Int32s, Int32s, Int32s], n_hubs: int, above: Int32s, heads: Classes
) -> npt.NDArray[np.bool_]:
    """Of each hub whether it ties what does not lie beside one another anyway.

    `ties`: producers, their hubs, consumers, theirs. A hub of one producer and one consumer tells nothing
    where the consumer lies right inside the producer, or both right inside the same event (`above`) and the
    producer is none of the `heads`.
    """
    producer, producer_hub, consumer, consumer_hub = ties
    cause, effect = np.zeros(n_hubs, np.int64), np.zeros(n_hubs, np.int64)
    cause[producer_hub], effect[consumer_hub] = producer, consumer
    single = (np.bincount(producer_hub, minlength=n_hubs) == 1) & (
        np.bincount(consumer_hub, minlength=n_hubs) == 1
    )
    beside = (above[cause] == above[effect]) & (heads[cause] == 0)
    kept: npt.NDArray[np.bool_] = ~(single & (beside | (above[effect] == cause)))
    return kept


def match(made: Rows, used: Rows, crowd: int) -> tuple[Int32s, Int32s, Int32s, Int32s, int] | None:
    """Producers and consumers of equal keys: (which of `made` have a hub, its number, which of `used`, its
    number, number of hubs).

    A hub stands for one key that both sides have and that is not on both sides `crowd` times or more; hubs
    are numbered by key.

        made   5 3 3 9        hub 0 is key 3, hub 1 is key 5
        used   3 5 5          (0 1 2 → 1 0 0), (0 1 2 → 0 1 1)

    Tracers count ids up from a few beginnings (such as a thread's number, shifted by 32 bits), so that in
    each block of 2^32 keys these lie close together and the compiled twin can count instead of sorting; where
    they do not, it gives None.
    """
    keys, n_made = np.unique(made, return_counts=True)
    others, n_used = np.unique(used, return_counts=True)
    shared, mine, theirs = np.intersect1d(keys, others, assume_unique=True, return_indices=True)
    shared = shared[(n_made[mine] < crowd) | (n_used[theirs] < crowd)]
    found: list[Int32s] = []
    for side in (made, used):
        at = np.flatnonzero(np.isin(side, shared)).astype(np.int32)
        found += [at, np.searchsorted(shared, side[at]).astype(np.int32)]
    return found[0], found[1], found[2], found[3], len(shared)


def look_up(owner: Int32s, value: Rows, rows: Int32s | Rows, missing: int) -> Rows:
    """The value of each row, the first of several, `missing` where it has none. `owner` ascends; rows that do
    are found fastest.

    owner   2 4 4 7      value   5 6 7 8      rows   1 4 7  →  missing 6 8
    """
    if not len(owner):
        return np.full(len(rows), missing, np.int64)
    at = np.minimum(np.searchsorted(owner, rows), len(owner) - 1)
    return np.where(owner[at] == rows, value[at], missing)


def find_ids(ordered: Rows, order: Rows, ids: Rows) -> Int32s:
    """The row of each id, -1 where there is none: `ordered` are the known ids ascending, `order` their rows;
    of equal ids the first.

    ordered   3 5 5 9      order   2 0 3 1      ids   9 4 5  →  1 -1 0
    """
    if not len(ordered):
        return np.full(len(ids), -1, np.int32)
    at = np.minimum(np.searchsorted(ordered, ids), len(ordered) - 1)
    return np.where(ordered[at] == ids, order[at], -1).astype(np.int32)
