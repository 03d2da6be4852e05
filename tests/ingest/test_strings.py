"""Strings of a trace: found and taken as a list would, whatever their bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tpuprof.ingest.hlo.module import decode_hlo
from tb_tpuprof.trace.strings import Strings
from tests.ingest.hlo_protos import small_proto

TEXTS = st.lists(st.one_of(st.text("ab1", max_size=4), st.text(max_size=3)), max_size=12, unique=True)


@given(TEXTS, st.text(max_size=3), st.data())
def test_found_and_taken_as_from_a_list(texts: list[str], other: str, data: st.DataObject) -> None:
    strings = Strings.of([text.encode() for text in texts])
    for text in [*texts, other]:
        assert strings.find(text) == (texts.index(text) if text in texts else -1)
    rows = data.draw(st.lists(st.integers(0, max(len(texts) - 1, 0)), max_size=5)) if texts else []
    assert strings.take(np.array(rows, np.int64)) == [texts[row] for row in rows]
    assert strings.all == texts


def test_many_texts_are_found_by_a_dict() -> None:
    texts = [f"x{i}" for i in range(2_000)]
    strings = Strings.of([text.encode() for text in texts])
    assert [strings.find(text) for text in texts] == list(range(2_000))


def test_what_is_not_there_and_bad_bytes() -> None:
    strings = Strings.of([b"a\xff", "ä".encode()])
    assert (strings.find("a\ufffd"), strings.find("ä"), strings.find("\ud800")) == (0, 1, -1)
    for rows in ([2], [-1]):
        with pytest.raises(IndexError):
            strings.take(np.array(rows))


def test_instructions_are_found_by_many_names_at_once() -> None:
    module = decode_hlo(small_proto(), "x", 7)
    wanted = ["dot.3", "gone", "", "fusion.4", "dot.3", "add.13"]
    blob = "".join(wanted).encode()
    offsets = np.append(0, np.cumsum([len(name) for name in wanted]))
    found = module.rows_named(np.frombuffer(blob, np.uint8), offsets)
    assert found.tolist() == [module.by_name.get(name, -1) for name in wanted]
