"""The compiled writer of Chrome traces and its plain twin: the same bytes, the same pieces of files whole and
damaged.
"""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.native.plain import trace_json as plain_trace_json

pytestmark = pytest.mark.skipif(
    not IS_COMPILED, reason="the extension is not built: there is nothing to compare"
)


def writer_input(chance: random.Random, n: int) -> tuple[Any, ...]:
    texts = [b'"a"', b'"b\\n"', '"é…"'.encode(), b'"k"', b'"x":1', b""]
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    whole = [0, 1, -1, 999_999, 10**6, 1_500_000, 2**62, -(2**62), 123_456_789_012, 10]
    reals = [0.0, 0.1, 1e16, -1.5e-300, float("nan"), float("inf"), 1 / 3, 123456789.125, 5e-324, -0.0]

    def column(kind: Any, values: list[int]) -> Any:
        return np.array([chance.choice(values) for _ in range(n)], kind)

    rows = (
        column(np.uint8, [88, 105, 98, 101, 110, 67, 115, 102]),
        column(np.int32, [1, 2**31 - 1]),
        column(np.int64, [0, 2**32 - 1]),
        column(np.int64, whole),
        column(np.int64, [-1, 0, 1, 2_000_001]),
        column(np.int64, [-1, 0, 2**40]),
        column(np.int32, [0, 1, 2]),
        column(np.int32, [-1, 3]),
        column(np.int32, [-1, 4]),
    )
    counts = [chance.randrange(3) for _ in range(n)]
    n_stats = sum(counts)
    kind = np.array([chance.choice([2, 3, 4, 5]) for _ in range(n_stats)], np.uint8)
    numbers = [0, -1, 2**63 - 1, -(2**63)]
    of_kind = {
        2: [int(np.float64(real).view(np.int64)) for real in reals],
        3: numbers,
        4: numbers,
        5: [0, 1, 2],
    }
    values = [chance.choice(of_kind[k]) for k in kind.tolist()]
    stats = (
        np.cumsum([0, *counts]).astype(np.int64),
        np.full(n_stats, 3, np.int32),
        kind,
        np.array(values, np.int64),
    )
    data = np.frombuffer('"p":[1,"ü"],"q":{} "cat" '.encode(), np.uint8)
    spans = np.array([[chance.choice([0, 0, 14]), 0, 0, 0, 0, 0] for _ in range(n // 2)], np.int64).reshape(
        -1, 6
    )
    for row in spans:
        row[:] = chance.choice(
            [[0, 0, 0, 0, 0, 0], [0, 12, 13, 19, 20, 25], [0, 12, 0, 0, 0, 0], [13, 19, 0, 0, 20, 25]]
        )
    return rows, stats, (np.frombuffer(b"".join(texts), np.uint8), offsets), data, spans


@pytest.mark.parametrize("seed", range(20))
def test_rows(seed: int) -> None:
    from tb_tpuprof.native.compiled import trace_json

    chance = random.Random(seed)
    given = writer_input(chance, 60)
    compiled, plain = trace_json.EventWriter(*given), plain_trace_json.EventWriter(*given)
    assert compiled.lines(0, 60) == plain.lines(0, 60)
    assert compiled.lines(7, 9) == plain.lines(7, 9)
    assert compiled.lines(50, 900) == plain.lines(50, 900)
    assert compiled.lines(5, 5) == b""
    if seed < 5:
        json.loads("[0" + plain.lines(0, 60).decode() + "]")


def some_objects(chance: random.Random) -> bytes:
    def value(depth: int) -> Any:
        kind = chance.randrange(8 if depth < 3 else 5)
        if kind == 5:
            return [value(depth + 1) for _ in range(chance.randrange(3))]
        if kind > 5:
            return {f"k{i}": value(depth + 1) for i in range(chance.randrange(3))}
        return chance.choice([1, -2.5e-7, True, None, 'a"\\\n', "é…😀", "", False, 10**30])

    events = []
    for _ in range(12):
        members = [
            ("ph", "X"),
            ("args", {f"a{i}": value(0) for i in range(chance.randrange(4))}),
            ("cat", chance.choice(["c", "é", 3])),
            ("ts", 1.5),
        ]
        chance.shuffle(members)
        events.append(
            json.dumps(
                dict(members[: chance.randrange(1, 5)]),
                ensure_ascii=chance.random() < 0.5,
                indent=chance.choice([None, 1]),
            )
        )
    return ",".join(events).encode()


@pytest.mark.parametrize("seed", range(60))
def test_members_of_objects(seed: int) -> None:
    from tb_tpuprof.native.compiled import trace_json

    chance = random.Random(seed)
    whole = bytearray(some_objects(chance))
    positions = [i for i, c in enumerate(whole) if c == ord("{")] + [-1, len(whole), len(whole) + 5]
    data, at = np.frombuffer(bytes(whole), np.uint8), np.array(positions, np.int64)
    assert np.array_equal(trace_json.members(data, at, 100), plain_trace_json.members(data, at, 100))
    for _ in range(
        chance.randrange(1, 8)
    ):  # damaged: nothing is copied that is not strict JSON, whatever the scanner makes of the rest
        i = chance.randrange(len(whole))
        whole[i : i + chance.randrange(3)] = chance.choice(
            [b"", b"\xff", b'"', b"{", b"}", b"\\", b"\x01", b"01", b"tru", b"-", b"\xed\xa0\x80"]
        )
    data = np.frombuffer(bytes(whole), np.uint8)
    at = np.array([i for i, c in enumerate(whole) if c == ord("{")], np.int64)
    for a, b, c, d in trace_json.members(data, at, 1000).tolist():
        assert -1 <= a <= b <= len(whole)
        if b > a >= 0:
            json.loads(b"{" + bytes(whole[a:b]) + b"}", parse_constant=lambda name: pytest.fail(name))
        if d > c:
            assert isinstance(json.loads(bytes(whole[c:d])), str)


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ('{"a":1}', True),
        ("{}", False),
        ('{ "a" : [ ] }', True),
        ('{"a":01}', False),
        ('{"a":1.}', False),
        ('{"a":.5}', False),
        ('{"a":+1}', False),
        ('{"a":1e5}', True),
        ('{"a":-0.0E-2}', True),
        ('{"a":NaN}', False),
        ('{"a":tru}', False),
        ('{"a":"\\x"}', False),
        ('{"a":"\\u12g4"}', False),
        ('{"a":"\x01"}', False),
        ('{"a":1,}', False),
        ('{"a" 1}', False),
        ('{"a":[1 2]}', False),
        ('{"a":"\\ud800"}', True),
    ],
)
def test_what_is_strict_json(text: str, is_kept: bool) -> None:
    from tb_tpuprof.native.compiled import trace_json

    data = np.frombuffer(f'{{"args":{text},"x":1}}'.encode(), np.uint8)
    for module in (trace_json, plain_trace_json):
        start, end, _, _ = module.members(data, np.zeros(1, np.int64), 100)[0].tolist()
        assert (end > start >= 0) == is_kept, module
