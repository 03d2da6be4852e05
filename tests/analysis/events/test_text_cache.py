"""Results of texts are kept, but no file can fill the memory with its names."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.events import text_cache as module
from tb_tpuprof.analysis.events.text_cache import text_cache


def test_each_text_is_computed_once_until_the_texts_are_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_CHARACTERS", 10)
    calls: list[str] = []

    @text_cache
    def doubled(text: str, times: int = 2) -> str:
        calls.append(text)
        return text * times

    assert [doubled("a"), doubled("a"), doubled("a", 3), doubled("a", 3), doubled("a", times=4)] == [
        "aa",
        "aa",
        "aaa",
        "aaa",
        "aaaa",
    ]
    assert calls == ["a"] * 3
    doubled("b" * 8)
    assert doubled.n_characters == 10
    doubled("a")
    assert len(calls) == 4
    doubled("c" * 20)
    doubled("c" * 20)
    assert doubled.n_characters <= 10, "what is longer than all may be is not kept"
    assert calls[4:] == ["c" * 20] * 2
    doubled("a")
    assert calls[6:] == ["a"]
