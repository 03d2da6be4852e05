"""A transposed chunk → its records: the header is read here, `native.untransposed` walks through its states.

    codec ▏size ▏header ▏bucket ▏bucket … ▏transitions

    header    numbers of buckets and buffers, their sizes
              n states: the tag of each, its next state, subtypes of varints, numbers of buffers
              the first state

Buffers hold the values of one field each, end to end in buckets; a bucket is compressed as a whole. Tags are
those of protobuf, with a few numbers below 8 and wire type 6 for what protobuf does not have.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.riegeli.codecs import unpacked
from tb_tpuprof.ingest.riegeli.varints import Damaged, VarintReader
from tb_tpuprof.native import untransposed
from tb_tpuprof.native.plain import riegeli

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
MOST_STATES, MOST_BUFFERS = 2**20, 2**20
_MOST_HEADER_BYTES = 64 * 2**20
_LENGTH_BYTES = 5  # at most, of the length of a record that is no message
_NOTHING, _WHOLE_RECORD, _MESSAGE_START, _RECORD_START, _LEAST_TAG = 0, 1, 2, 3, 8
_SPECIAL = {
    _NOTHING: riegeli.NOTHING,
    _WHOLE_RECORD: riegeli.WHOLE_RECORD,
    _MESSAGE_START: riegeli.MESSAGE_START,
    _RECORD_START: riegeli.RECORD_START,
}
_VARINT, _FIXED_64, _TEXT, _GROUP_START, _GROUP_END, _FIXED_32, _MESSAGE_END = range(7)
_KIND_OF_WIRE = {
    _VARINT: riegeli.VARINT,
    _FIXED_64: riegeli.FIXED,
    _TEXT: riegeli.TEXT,
    _GROUP_START: riegeli.TAG_ONLY,
    _GROUP_END: riegeli.TAG_ONLY,
    _FIXED_32: riegeli.FIXED,
    _MESSAGE_END: riegeli.MESSAGE_END,
}
_VALUE_BYTES = {_FIXED_64: 8, _FIXED_32: 4}
_FIRST_INLINE, _MOST_INLINE = 10, 0x7F  # subtypes of varints: sizes 1 to 10, then values 0 to 127
_HAS_BUFFER = (riegeli.WHOLE_RECORD, riegeli.VARINT, riegeli.FIXED, riegeli.TEXT)


def transposed_records(data: Bytes, n_records: int, size: int) -> tuple[Bytes, Ints]:
    """(the records end to end, the end of each). Raises Damaged or MissingCodec."""
    codec, reader = int(data[0]), VarintReader(data[1:])
    header = VarintReader(unpacked(codec, reader.bytes(reader.number()), _MOST_HEADER_BYTES))
    n_buckets, n_buffers = header.number(), header.number()
    if n_buffers > MOST_BUFFERS or n_buckets > n_buffers:
        raise Damaged(f"it states {n_buckets:,} buckets with {n_buffers:,} buffers")
    bucket_sizes, buffer_sizes = header.numbers(n_buckets), header.numbers(n_buffers)
    states = _states(header, n_buffers)
    first_state = header.number()
    if first_state >= len(states) or len(header.rest()):
        raise Damaged("its header has no first state, or more than that")
    buffers = _buffers(codec, reader, bucket_sizes, buffer_sizes, size + _LENGTH_BYTES * n_records)
    most_transitions = riegeli.STEPS_PER_BYTE * (size + n_records + 256)
    transitions = unpacked(codec, reader.rest(), most_transitions)
    try:
        values, ends = untransposed(
            states, first_state, buffers, np.ascontiguousarray(transitions), n_records, size
        )
    except riegeli.Malformed as error:
        raise Damaged(str(error)) from None
    return values, ends


def _buffers(
    codec: int, reader: VarintReader, bucket_sizes: Ints, buffer_sizes: Ints, most_bytes: int
) -> tuple[Bytes, Ints, Ints]:
    """All buffers end to end, the start and the end of each."""
    parts, n_left = [np.empty(0, np.uint8)], most_bytes
    for bucket_size in bucket_sizes.tolist():
        parts.append(unpacked(codec, reader.bytes(bucket_size), n_left))
        n_left -= len(parts[-1])
    content = np.concatenate(parts)
    if (buffer_sizes > len(content)).any() or int(buffer_sizes.sum(dtype=np.float64)) != len(content):
        raise Damaged("the sizes of its buffers contradict its buckets")
    ends = np.cumsum(buffer_sizes, dtype=np.int64)
    return content, ends - buffer_sizes, ends


def _states(header: VarintReader, n_buffers: int) -> Ints:
    """The states as rows for `untransposed`."""
    n_states = header.number()
    if not 0 < n_states <= MOST_STATES:
        raise Damaged(f"it states {n_states:,} states")
    tags, next_states = header.numbers(n_states), header.numbers(n_states)
    is_implicit = next_states >= n_states
    next_states = np.where(is_implicit, next_states - n_states, next_states)
    if (next_states >= n_states).any() or (tags > 0xFFFFFFFF).any():
        raise Damaged("a state has an impossible tag or next state")
    if _has_loop(next_states, is_implicit):
        raise Damaged("its states form a circle")
    has_subtype = (tags >= _LEAST_TAG) & (tags & 7 == _VARINT)
    subtypes = iter(header.bytes(int(has_subtype.sum())).tolist())
    rows = [
        _state(tag, next(subtypes) if is_varint else -1)
        for tag, is_varint in zip(tags.tolist(), has_subtype.tolist(), strict=True)
    ]
    states = np.zeros((n_states, riegeli.STATE_COLUMNS), np.int64)
    states[:, (0, 1, 2, 6)] = rows
    states[:, 3] = -1
    with_buffer = np.flatnonzero(np.isin(states[:, 0], _HAS_BUFFER))
    states[with_buffer, 3] = header.numbers(len(with_buffer))
    if (states[:, 3] >= n_buffers).any():
        raise Damaged("a state has a buffer that is not there")
    states[:, 4], states[:, 5] = next_states, is_implicit
    return states


def _state(tag: int, subtype: int) -> tuple[int, int, int, int]:
    """(kind, the bytes of the tag as a number, how many they are, size of the values) of a state."""
    if tag in _SPECIAL:
        return _SPECIAL[tag], 0, 0, 0
    wire = tag & 7
    if wire == _MESSAGE_END:
        tag += _TEXT - _MESSAGE_END
    if tag < _LEAST_TAG or wire not in _KIND_OF_WIRE:
        raise Damaged(f"a state has the impossible tag {tag}")
    n, word, rest = 1, tag & 0x7F, tag >> 7
    while rest:
        word |= 0x80 << 8 * (n - 1) | (rest & 0x7F) << 8 * n
        n, rest = n + 1, rest >> 7
    if wire != _VARINT:
        return _KIND_OF_WIRE[wire], word, n, _VALUE_BYTES.get(wire, 0)
    if subtype < _FIRST_INLINE:
        return riegeli.VARINT, word, n, subtype + 1
    if subtype > _FIRST_INLINE + _MOST_INLINE:
        raise Damaged(f"a state has the impossible subtype {subtype}")
    return riegeli.TAG_ONLY, word | (subtype - _FIRST_INLINE) << 8 * n, n + 1, 0


def _has_loop(next_states: Ints, is_implicit: npt.NDArray[np.bool_]) -> bool:
    """Whether states follow one another without a transition in a circle."""
    following, implicit = next_states.tolist(), is_implicit.tolist()
    walk_of = [0] * len(following)
    for first in range(len(following)):
        state = first
        while implicit[state] and not walk_of[state]:
            walk_of[state] = first + 1
            state = following[state]
        if implicit[state] and walk_of[state] == first + 1:
            return True
    return False
