# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Selecting events by their metadata and looking up values of rows, each in one pass. Compiled; the twins in
`plain/selection.py` have the full docstrings.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint16_t, uint64_t

MAX_BLOCKS = cython.declare(int64_t, 4096)
MOST_COUNTED = cython.declare(uint16_t, 65535)
Whole = cython.fused_type(int32_t, int64_t)
Small = cython.fused_type(int32_t, uint8_t)
LOW_BITS = cython.declare(int64_t, 0xFFFFFFFF)


def ascends(values: cython.const[int32_t][::1]):
    """Whether each value is greater than the one before it."""
    i: int64_t
    falls: int64_t = 0
    with cython.nogil:
        for i in range(1, values.shape[0]):
            falls += values[i] <= values[i - 1]
    return falls == 0


def classes_of(metadata: cython.const[int32_t][::1], klass: cython.const[uint8_t][::1]):
    """Class of each event by its metadata row; see `plain.selection.classes_of`."""
    n: int64_t = metadata.shape[0]
    classes = np.empty(n, np.uint8)
    out: uint8_t[::1] = classes
    i: int64_t
    with cython.nogil:
        for i in range(n):
            out[i] = klass[metadata[i]] if 0 <= metadata[i] < klass.shape[0] else 0
    return classes


def rows_of(metadata: cython.const[int32_t][::1], wanted: cython.const[uint8_t][::1], dtype=np.int64):
    """Events whose metadata row is wanted, ascending; see `plain.selection.rows_of`."""
    buffer = np.empty(metadata.shape[0], dtype)  # unwritten pages cost nothing
    narrow: int32_t[::1]
    wide: int64_t[::1]
    n: int64_t
    if dtype == np.int32:
        narrow = buffer
        n = _put_rows(metadata, wanted, narrow)
    else:
        wide = buffer
        n = _put_rows(metadata, wanted, wide)
    return buffer[:n] if 2 * n > metadata.shape[0] else buffer[:n].copy()


def repeated(values, counts):
    """Each value as often as counted; see `plain.selection.repeated`."""
    times: cython.const[int64_t][::1] = np.ascontiguousarray(counts, np.int64)
    if len(values) != len(times) or (len(times) and np.min(times) < 0):
        raise ValueError("a count of 0 or more is needed for each value")
    if values.dtype != np.int32 and values.dtype.itemsize != 1:
        raise ValueError("values are int32 or of one byte")
    result = np.empty(int(np.sum(times)), values.dtype)
    if values.dtype == np.int32:
        _repeat[int32_t](np.ascontiguousarray(values), times, result)
    else:
        _repeat[uint8_t](np.ascontiguousarray(values).view(np.uint8), times, result.view(np.uint8))
    return result


@cython.cfunc
def _repeat(values: cython.const[Small][::1], times: cython.const[int64_t][::1], out: Small[::1]):
    i: int64_t
    k: int64_t
    n: int64_t = 0
    with cython.nogil:
        for i in range(values.shape[0]):
            for k in range(n, n + times[i]):
                out[k] = values[i]
            n += times[i]


@cython.cfunc
def _put_rows(
    metadata: cython.const[int32_t][::1], wanted: cython.const[uint8_t][::1], out: Whole[::1]
) -> int64_t:
    n: int64_t = 0
    i: int64_t
    with cython.nogil:
        for i in range(metadata.shape[0]):
            if 0 <= metadata[i] < wanted.shape[0] and wanted[metadata[i]] != 0:
                out[n] = i
                n += 1
    return n


def outermost(
    klass: cython.const[uint8_t][::1],
    group: cython.const[int32_t][::1],
    parent: cython.const[int32_t][::1],
    limit: cython.int,
):
    """Events of a group and of a class below the limit, without children of an event of the same group and
    the same or a higher such class; see `plain.selection.outermost`.
    """
    n: int64_t = klass.shape[0]
    buffer = np.empty(n, np.int64)  # unwritten pages cost nothing
    out: int64_t[::1] = buffer
    n_found: int64_t = 0
    i: int64_t
    above: int64_t
    with cython.nogil:
        for i in range(n):
            if klass[i] < limit and group[i] >= 0:
                above = parent[i]
                if not (
                    0 <= above < n
                    and klass[above] < limit
                    and klass[above] >= klass[i]
                    and group[above] == group[i]
                ):
                    out[n_found] = i
                    n_found += 1
    return buffer[:n_found].copy()


def informative_hubs(
    ties: tuple, n_hubs: int64_t, above: cython.const[int32_t][::1], heads: cython.const[uint8_t][::1]
):
    """Which hubs tie events that are not adjacent in the call tree anyway; see
    `plain.selection.informative_hubs`.
    """
    producer: cython.const[int32_t][::1] = ties[0]
    producer_hub: cython.const[int32_t][::1] = ties[1]
    consumer: cython.const[int32_t][::1] = ties[2]
    consumer_hub: cython.const[int32_t][::1] = ties[3]
    made_by = np.full(n_hubs, -1, np.int32)
    used_by = np.full(n_hubs, -1, np.int32)
    result = np.empty(n_hubs, np.uint8)
    made: int32_t[::1] = made_by
    used: int32_t[::1] = used_by
    is_informative: uint8_t[::1] = result
    i: int64_t
    cause: int64_t
    effect: int64_t
    with cython.nogil:
        for i in range(producer.shape[0]):  # -2: more than one
            made[producer_hub[i]] = producer[i] if made[producer_hub[i]] == -1 else -2
        for i in range(consumer.shape[0]):
            used[consumer_hub[i]] = consumer[i] if used[consumer_hub[i]] == -1 else -2
        for i in range(n_hubs):
            cause = made[i]
            effect = used[i]
            is_informative[i] = (
                cause < 0
                or effect < 0
                or not ((above[cause] == above[effect] and heads[cause] == 0) or above[effect] == cause)
            )
    return result.view(np.bool_)


def match(made: cython.const[int64_t][::1], used: cython.const[int64_t][::1], crowd: int64_t):
    """Producers and consumers with equal keys; see `plain.selection.match`. None if the keys are too sparse
    to be counted.
    """
    low: int64_t = 2**62
    high: int64_t = -(2**62)
    i: int64_t
    n_hubs: int32_t = 0
    with cython.nogil:
        for i in range(made.shape[0]):
            low = min(low, made[i] >> 32)
            high = max(high, made[i] >> 32)
        for i in range(used.shape[0]):
            low = min(low, used[i] >> 32)
            high = max(high, used[i] >> 32)
    if made.shape[0] == 0 or used.shape[0] == 0 or high - low >= MAX_BLOCKS:
        return None
    widths = np.zeros(high - low + 1, np.int64)
    _widen(made, low, widths)
    _widen(used, low, widths)
    n: int64_t = int(widths.sum())
    if n > 8 * (made.shape[0] + used.shape[0]) + 1024:
        return None
    base = np.cumsum(widths) - widths
    hubs = np.empty(n, np.int32)
    hub: int32_t[::1] = hubs
    n_made: uint16_t[::1] = _counts(made, low, base, n)
    n_used: uint16_t[::1] = _counts(used, low, base, n)
    with cython.nogil:
        for i in range(n):
            hub[i] = -1
            if n_made[i] > 0 and n_used[i] > 0 and (n_made[i] < crowd or n_used[i] < crowd):
                hub[i] = n_hubs
                n_hubs += 1
    return (*_hubs_of(made, low, base, hub), *_hubs_of(used, low, base, hub), n_hubs)


@cython.cfunc
def _widen(keys: cython.const[int64_t][::1], low: int64_t, width: int64_t[::1]):
    """Make each block as wide as its largest key needs."""
    i: int64_t
    need: int64_t
    with cython.nogil:
        for i in range(keys.shape[0]):
            need = (keys[i] & LOW_BITS) + 1
            if need > width[(keys[i] >> 32) - low]:
                width[(keys[i] >> 32) - low] = need


@cython.cfunc
def _counts(keys: cython.const[int64_t][::1], low: int64_t, base: int64_t[::1], n: int64_t):
    """How often each key occurs, by the key's index; 65,535 means that or more."""
    counts = np.zeros(n, np.uint16)
    count: uint16_t[::1] = counts
    i: int64_t
    index: int64_t
    with cython.nogil:
        for i in range(keys.shape[0]):
            index = base[(keys[i] >> 32) - low] + (keys[i] & LOW_BITS)
            count[index] += count[index] < MOST_COUNTED
    return counts


@cython.cfunc
def _hubs_of(keys: cython.const[int64_t][::1], low: int64_t, base: int64_t[::1], hub: int32_t[::1]):
    """The keys that have a hub (their indexes), and their hubs."""
    key_buffer = np.empty(keys.shape[0], np.int32)
    hub_buffer = np.empty(keys.shape[0], np.int32)
    key_index: int32_t[::1] = key_buffer
    hub_of_key: int32_t[::1] = hub_buffer
    n: int64_t = 0
    i: int64_t
    number: int32_t
    with cython.nogil:
        for i in range(keys.shape[0]):
            number = hub[base[(keys[i] >> 32) - low] + (keys[i] & LOW_BITS)]
            if number >= 0:
                key_index[n] = cython.cast(int32_t, i)
                hub_of_key[n] = number
                n += 1
    if n == keys.shape[0]:
        return key_buffer, hub_buffer
    return key_buffer[:n].copy(), hub_buffer[:n].copy()


def look_up(
    owner: cython.const[int32_t][::1],
    value: cython.const[int64_t][::1],
    rows: cython.const[Whole][::1],
    missing: int64_t,
):
    """The first value of each row; see `plain.selection.look_up`."""
    m: int64_t = owner.shape[0]
    n: int64_t = rows.shape[0]
    result = np.empty(n, np.int64)
    out: int64_t[::1] = result
    k: int64_t = 0  # all owners before are less than the row
    i: int64_t
    high: int64_t
    step: int64_t
    middle: int64_t
    row: int64_t
    with cython.nogil:
        for i in range(n):
            row = rows[i]
            if i > 0 and row < rows[i - 1]:
                k = 0
            if k < m and owner[k] < row:
                step = 1
                while k + step < m and owner[k + step] < row:
                    k += step
                    step *= 2
                high = min(k + step, m)
                k += 1
                while k < high:
                    middle = (k + high) // 2
                    if owner[middle] < row:
                        k = middle + 1
                    else:
                        high = middle
            out[i] = value[k] if k < m and owner[k] == row else missing
    return result


def find_ids(
    ordered: cython.const[int64_t][::1], order: cython.const[int64_t][::1], ids: cython.const[int64_t][::1]
):
    """The row of each id, -1 if there is none; see `plain.selection.find_ids`."""
    m: int64_t = ordered.shape[0]
    n: int64_t = ids.shape[0]
    result = np.empty(n, np.int32)
    out: int32_t[::1] = result
    index: int64_t = 0
    high: int64_t
    middle: int64_t
    distance: int64_t
    i: int64_t
    with cython.nogil:
        for i in range(n):
            out[i] = -1
            if m == 0 or ids[i] < ordered[0] or ids[i] > ordered[m - 1]:
                continue
            # If ids are consecutive, the distance to the last one found equals the difference of the ids.
            distance = cython.cast(
                int64_t, cython.cast(uint64_t, ids[i]) - cython.cast(uint64_t, ordered[index])
            )
            if (
                -index <= distance < m - index
                and ordered[index + distance] == ids[i]
                and (index + distance == 0 or ordered[index + distance - 1] < ids[i])
            ):
                index += distance
            else:
                index = 0
                high = m - 1
                while index < high:
                    middle = (index + high) // 2
                    if ordered[middle] < ids[i]:
                        index = middle + 1
                    else:
                        high = middle
            if ordered[index] == ids[i]:
                out[i] = cython.cast(int32_t, order[index])
    return result
