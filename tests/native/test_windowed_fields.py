"""Parts of a large message are found without reading what lies between them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tb_tpuprof.ingest.storage.files import FileState
from tb_tpuprof.ingest.storage.source import BytesSource
from tb_tpuprof.native import fields
from tb_tpuprof.trace import windowed_fields
from tb_tpuprof.trace.windowed_fields import messages_within
from tests.ingest.hlo_protos import message


class Counting(BytesSource):
    """Counts what is read."""

    n_bytes = 0

    def block(self, position: int, size: int) -> np.ndarray:
        self.n_bytes += size
        return super().block(position, size)


def source_of(data: bytes) -> Counting:
    block = np.frombuffer(data, np.uint8)
    return Counting(FileState("", len(block), 0), block)


def expected(data: bytes, start: int, number: int) -> list[tuple[int, int]]:
    rows, _ = fields(np.frombuffer(data, np.uint8), start, len(data))
    return [(row[2], row[3]) for row in rows.tolist() if row[0] == number and row[1] == 2]


def test_what_is_large_and_not_asked_for_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windowed_fields, "WINDOW_BYTES", 64)
    data = b"???" + message(
        {1: "a" * 5, 3: ["b" * 100_000, "c" * 3, "d" * 70_000], 5: 7, 15: {1: 2, 2: 4}, 16: "e" * 1000}
    )
    source = source_of(data)
    for number in (1, 3, 15, 16):
        assert messages_within(source, 3, len(data) - 3, number) == expected(data, 3, number)
    assert source.n_bytes < 5000


def test_damage_ends_it_where_it_ends_the_reader_of_whole_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(3)
    whole = message({k: ["x" * chance.randrange(200) for _ in range(5)] for k in (1, 3, 15)})
    for k in range(300):
        monkeypatch.setattr(windowed_fields, "WINDOW_BYTES", chance.choice((32, 100, 10_000)))
        data = bytearray(whole[: chance.randrange(len(whole))] if k % 2 else whole)
        for _ in range(k % 3):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        assert messages_within(source_of(bytes(data)), 0, len(data), 15) == expected(bytes(data), 0, 15), k
