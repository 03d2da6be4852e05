"""Forms of the Chrome trace file, and what of a damaged or odd one is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.ingest.storage import column_cache
from tb_tpuprof.ingest.storage.files import file_state
from tb_tpuprof.trace import schema
from tests.ingest.chrome_files import US, opened, rows, written, x


@pytest.mark.parametrize(
    "text",
    [
        '[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1},{"ph":"X","name":"b","ts":4,"dur":2,"pid":1,"tid":1}]',
        '[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1},\n{"ph":"X","name":"b","ts":4,"dur":2,"pid":1,"tid":1},\n',
        '[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1},{"ph":"X","name":"b","ts":4,"dur":2,"pid":1,"tid":1},]',
        '\ufeff {"other": {"deep": [[[1,{"x":"]}"}]]]}, "traceEvents": [{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1},'
        ' {"ph":"X","name":"b","ts":4,"dur":2,"pid":1,"tid":1}, {}], "displayTimeUnit": "ns"}',
    ],
    ids=["array", "unterminated", "trailing comma", "object"],
)
def test_forms_of_the_file_that_are_whole(tmp_path: Path, text: str) -> None:
    for name in ("h.trace.json", "h.trace.json.gz"):
        trace = opened(tmp_path, text, name)
        assert [(row[2], row[3], row[4]) for row in rows(trace)] == [("a", 0, 2 * US), ("b", 3 * US, 2 * US)]
        assert trace.info.n_damaged == 0
        assert trace.info.host == "h"


def test_behind_damage_nothing_is_read_and_that_is_said(tmp_path: Path) -> None:
    text = '{"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1},{"ph":"X","name":"b","ts'
    trace = opened(tmp_path, text)
    assert [row[2] for row in rows(trace)] == ["a"]
    assert trace.info.n_damaged == 1
    assert "cut off or damaged at byte" in trace.info.damage


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"spans": [{"spanId": 1}]}', "without the traceEvents"),
        ("[1, 2, 3]", "without the traceEvents"),
        ('{"traceEvents": [{"ph": ', "cut off, damaged or not JSON"),
        ('{"a', "cut off, damaged or not JSON"),
        ("[" * 100_000, "not JSON"),
        (b'{"traceEvents": [\xff\xfe', "not JSON"),
    ],
)
def test_what_is_no_chrome_trace_is_refused_with_the_reason(tmp_path: Path, content: Any, words: str) -> None:
    with pytest.raises(TraceFormatError, match=words):
        opened(tmp_path, content)


def test_truncated_gzip_opens_as_far_as_it_unpacks(tmp_path: Path) -> None:
    path = written(tmp_path, [x("a", i, 1) for i in range(1000)], "h.trace.json.gz")
    path.write_bytes(path.read_bytes()[:-100])
    trace = open_trace(str(path))
    assert 500 < trace.n_events < 1000
    assert "cut off" in trace.info.damage


def test_texts_are_unescaped_and_bad_ones_kept(tmp_path: Path) -> None:
    names = ('q\\"\\u00e9\\n', "C:\\dir\\x", "\\u00e9", "é")
    text = (
        "["
        + ",".join(
            f'{{"ph":"X","name":"{name}","ts":{i},"dur":1,"pid":1,"tid":1}}' for i, name in enumerate(names)
        )
        + "]"
    )
    trace = opened(tmp_path, text)
    assert [row[2] for row in rows(trace)][:1] == ['q"é\n']
    assert [row[2] for row in rows(trace)][2:] == ["é", "é"]
    assert len(trace.metadata) == 3
    data = b'[{"ph":"X","name":"bad \xff","ts":0,"dur":1,"pid":1,"tid":1}]'
    assert rows(opened(tmp_path, data))[0][2] == "bad \ufffd"


def test_what_cannot_be_shown_is_said(tmp_path: Path) -> None:
    trace = opened(
        tmp_path,
        {
            "traceEvents": [x("a", 0, 1), x("v", 1, 1) | {"ph": "v"}],
            "systemTraceEvents": "# tracer: nop",
            "ERROR": ["bad thing"],
        },
    )
    assert trace.info.warnings == ("bad thing",)
    assert trace.info.notes == (
        "Events of the phase 'v' cannot be shown: 1.",
        "The file's systemTraceEvents are not shown.",
    )


def test_the_column_cache_keeps_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    flow = {"name": "f", "cat": "c", "pid": 7, "id": 3}
    events = [
        x("a", 0, 9, args={"k": "v"}),
        x("b", 1, 2, 2),
        {"ph": "C", "name": "n", "ts": 1, "pid": 7, "args": {"v": 2}},
        flow | {"ph": "s", "ts": 1, "tid": 1},
    ]
    path = written(
        tmp_path,
        [
            *events,
            flow | {"ph": "f", "bp": "e", "ts": 2, "tid": 2},
            {"ph": "b", "name": "z", "ts": 0, "pid": 7, "id": 1},
        ],
        "h.trace.json.gz",
    )
    trace = open_trace(str(path))
    assert column_cache.save(file_state(str(path)), trace)
    again = column_cache.load(file_state(str(path)))
    assert again is not None
    assert rows(again) == rows(trace)
    for name, spec in schema.TABLES.items():
        fresh, kept = (
            part.table if hasattr(part := getattr(one, name), "table") else part for one in (trace, again)
        )
        assert {c.name: kept[c.name].tolist() for c in spec} == {
            c.name: fresh[c.name].tolist() for c in spec
        }, name
    assert all(len(getattr(again, name)) for name in ("line_kinds", "counters", "samples", "flows"))
    assert again.samples["value"].tolist() == [2.0]
    assert again.kind_of_line.tolist() == trace.kind_of_line.tolist()
    assert again.source.event_stats(again, 0) == [("k", "v")]


def test_a_deep_or_wide_event_does_no_harm(tmp_path: Path) -> None:
    deep = (
        '[{"ph":"X","name":"deep","ts":0,"dur":1,"pid":1,"tid":1,"args":{"d":'
        + "[" * 50_000
        + "]" * 50_000
        + "}}]"
    )
    trace = opened(tmp_path, deep)
    assert trace.n_events == 1
    with pytest.raises(TraceFormatError, match="cannot be read"):
        trace.source.event_stats(trace, 0)
    nested = [{"ph": "B", "name": "n", "ts": i, "pid": 1, "tid": 1} for i in range(20_000)]
    trace = opened(tmp_path, nested)
    assert trace.n_events == 20_000
    assert (np.diff(trace.events["start_ps"]) > 0).all()
    huge = json.dumps([x("a", 10**30, 1), x("b", float("nan"), 1), x("c", 0, 10**40)]).replace("NaN", "NaN")
    trace = opened(tmp_path, huge)
    assert trace.n_events >= 1
    assert trace.events["duration_ps"].max() <= 2**61
