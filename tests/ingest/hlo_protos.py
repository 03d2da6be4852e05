"""HLO programs as bytes, written field by field: {1: "name", 3: [{…}, {…}]} → protobuf's wire format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

F32, TUPLE = 11, 13


def varint(n: int) -> bytes:
    n &= 2**64 - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def message(fields: Mapping[int, Any]) -> bytes:
    """Numbers become varints, tuples packed numbers, texts, bytes and mappings length-delimited fields, lists
    repeated ones.
    """
    parts: list[bytes] = []
    for number, value in fields.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, int):
                parts += [varint(number << 3), varint(item)]
                continue
            data = message(item) if isinstance(item, Mapping) else item
            data = b"".join(map(varint, data)) if isinstance(data, tuple) else data
            data = data.encode() if isinstance(data, str) else data
            parts += [varint(number << 3 | 2), varint(len(data)), data]
    return b"".join(parts)


def array(*dims: int, code: int = F32) -> dict[int, Any]:
    """Shape of an array, the last dimension the fastest."""
    return {2: code, 3: tuple(dims), 5: {1: tuple(reversed(range(len(dims))))}}


def instruction(
    key: int, opcode: str, shape: Any, operands: Sequence[int] = (), **more: Any
) -> dict[int, Any]:
    """An instruction called `<opcode>.<key>`; further fields as f<number>=value."""
    return {
        1: f"{opcode}.{key}",
        2: opcode,
        3: shape,
        35: key,
        36: tuple(operands),
        **{int(name[1:]): value for name, value in more.items()},
    }


def computation(key: int, name: str, instructions: Sequence[Any], root: int) -> dict[int, Any]:
    return {1: name, 2: list(instructions), 5: key, 6: root}


def proto(computations: Sequence[Any], entry: int = 1, buffers: Any = None, **more: Any) -> bytes:
    """A serialized HloProto; further fields of the module as f<number>=value."""
    module = {
        1: "jit_f",
        3: list(computations),
        5: 7,
        6: entry,
        **{int(name[1:]): value for name, value in more.items()},
    }
    return message({1: module} | ({3: buffers} if buffers else {}))


def small_proto() -> bytes:
    """A dot and a fusion of two elementwise operations, with a schedule and buffers."""
    shape = array(8, 16)
    body = [
        instruction(11, "parameter", shape),
        instruction(12, "exponential", shape, [11]),
        instruction(13, "add", shape, [12, 11]),
    ]
    entry = [
        instruction(1, "parameter", array(8, 4), f9=0, f7={2: "x"}),
        instruction(2, "parameter", array(4, 16), f9=1),
        instruction(
            3,
            "dot",
            shape,
            [1, 2],
            f30={1: (1,), 2: (0,)},
            f7={1: "dot_general", 2: "jit(f)/dot", 3: "a.py", 4: 3, 15: 2},
        ),
        instruction(4, "fusion", shape, [3], f11="kLoop", f38=(20,), f43=b'{"a":"1"}', f37=(3,)),
    ]
    places = [
        {1: 0, 2: 512, 3: {2: "dot.3"}, 4: 0},
        {1: 1, 2: 512, 3: {4: 4, 3: (1, 0)}, 4: 1},
        {1: 5, 2: 64, 3: {2: "gone"}},
    ]
    heap = {
        1: [{1: 0, 2: 0, 4: "dot.3"}, {1: 2, 2: 1, 4: "fusion.4", 5: 0}, {1: 1, 2: 9, 4: "?"}],
        3: 0,
        2: 1,
    }
    allocations = [
        {1: 0, 2: 1024, 8: 0, 9: [{1: 0, 2: 0, 3: 512}, {1: 1, 2: 512, 3: 512}]},
        {1: 1, 2: 128, 5: 1, 6: 1, 10: (2,), 7: 1},
    ]
    frames = {
        1: ["a.py"],
        2: ["f", "main"],
        3: [{1: 1, 2: 1, 3: 3, 4: 7}, {1: 1, 2: 2, 3: 9}],
        4: [{1: 2}, {1: 1, 2: 1}, {1: 1, 2: 3}],
    }
    return proto(
        [computation(20, "body", body, 13), computation(1, "main", entry, 4)],
        buffers={1: places, 3: allocations, 4: [heap]},
        f7={1: [{1: 1, 2: {1: (2, 1, 3, 4, 99)}}]},
        f17=frames,
        f4={1: [array(8, 4), array(4, 16)], 2: shape, 3: ["x", "y"]},
        f15={1: 2, 2: 4},
        f8={1: [{1: (), 2: 1, 4: 2}]},
    )
