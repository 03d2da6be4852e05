"""Random Chrome traces: read the same as in the plainest way, by both scanners; damaged ones: an error or a
trace, never a crash.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.native.plain import json_events as plain_json_events
from tb_tpuprof.native.plain import pairing as plain_pairing
from tb_tpuprof.native.plain.json_events import JSON
from tests.ingest.chrome_files import opened, plain_durations, ps, rows

NAMES = st.sampled_from(["a", "b", "kernel<int>", 'q"uote', "back\\slash", "é", "雪\n", ""])
TIMES = st.one_of(
    st.integers(-50, 10_000),
    st.integers(0, 10**10).map(lambda n: n / 1000),
    st.integers(10**15, 10**15 + 1000),
)
IDS = st.one_of(st.integers(0, 3), st.sampled_from(["0x1", "two"]))


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    phase = draw(st.sampled_from("X" * 6 + "BBEEiCbensft"))
    event: dict[str, Any] = {
        "ph": phase,
        "name": draw(NAMES),
        "ts": draw(TIMES),
        "pid": draw(st.sampled_from([1, 2, "p"])),
        "tid": draw(IDS),
    }
    if phase == "X":
        event["dur"] = draw(st.integers(0, 5000).map(lambda n: n / 8))
    if phase in "bensft":
        event |= {"cat": draw(st.sampled_from(["c", "d"])), "id": draw(IDS)}
    if phase == "C":
        event["args"] = {
            draw(NAMES) or "v": draw(
                st.one_of(st.integers(-(2**63) + 1, 2**64 - 1), st.floats(-1e9, 1e9), st.just("no"))
            )
        }
    elif draw(st.booleans()):
        event["args"] = {
            draw(NAMES): draw(
                st.recursive(
                    st.none() | st.booleans() | NAMES, lambda inner: st.lists(inner, max_size=2), max_leaves=4
                )
            )
        }
    keys = draw(st.permutations(list(event)))
    return {key: event[key] for key in keys}


def normal(found: dict[str, Any]) -> dict[str, Any]:
    """What a scanner found, with texts in place of their numbers and ids numbered in the order of their first
    use.
    """
    offsets = found["offsets"].tolist()
    texts = [found["blob"][a:b].tobytes() for a, b in itertools.pairwise(offsets)]
    columns = {name: values.tolist() for name, values in found["events"].items()}
    for name in ("name", "cat", "pid", "tid"):
        columns[name] = [_text(texts[i]) if i >= 0 else None for i in columns[name]]
    first: dict[int, int] = {}
    columns["id"] = [
        first.setdefault(value, len(first)) if flags & 64 else -1
        for value, flags in zip(columns["id"], columns["flags"], strict=True)
    ]
    values = []
    for value, event, key, kind in zip(
        *(found["values"][name].tolist() for name in ("value", "event", "key", "kind")), strict=True
    ):
        shown = _flat(texts[value]) if kind in (5, JSON) else value
        values.append((shown, event, _text(texts[key]), kind))
    rest = {name: found[name] for name in ("members", "bad", "is_open", "n_others")}
    return {"columns": columns, "values": values, **rest}


def _flat(raw: bytes) -> str:
    """A text; of an array only what neither spaces, quotes nor escapes make different."""
    return (
        re.sub(r"\\u[0-9a-f]{4}|\\n|[^ -~]|[\s\"\\]", "", raw.decode("utf-8", "replace"))
        if raw[:1] in (b"[", b"{")
        else _text(raw)
    )


def _text(raw: bytes) -> str:
    try:
        return str(json.loads(b'"' + raw + b'"', strict=False))
    except ValueError:
        return raw.decode("utf-8", "replace")


def same_by_both(data: bytes) -> None:
    from tb_tpuprof.native.compiled import json_events

    array = np.frombuffer(data, np.uint8)
    hot = [b"a", b"kernel<int>"]
    assert normal(json_events.scan(array, hot, 5)) == normal(plain_json_events.scan(array, hot, 5))
    for some in (hot, []):
        in_full = json_events.scan(array, some, 5, True)
        assert normal(in_full) == normal(plain_json_events.scan(array, some, 5, True))


@pytest.mark.slow
@pytest.mark.skipif(not IS_COMPILED, reason="the extension is not built: there is nothing to compare")
@settings(deadline=None, max_examples=150)
@given(st.lists(events(), max_size=12), st.booleans(), st.booleans(), st.sampled_from([None, 1]))
def test_both_scanners_read_the_same(
    found: list[dict[str, Any]], is_ascii: bool, in_object: bool, indent: int | None
) -> None:
    content = {"first": {"x": [1]}, "traceEvents": [*found, {}], "last": "é"} if in_object else found
    same_by_both(json.dumps(content, ensure_ascii=is_ascii, indent=indent).encode())


@pytest.mark.skipif(not IS_COMPILED, reason="the extension is not built: there is nothing to compare")
@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(-1, 3)), max_size=40))
def test_both_pair_up_the_same(found: list[tuple[int, int, int]]) -> None:
    from tb_tpuprof.native.compiled import pairing

    found = sorted(found, key=lambda row: row[0])
    key, kind, name = (
        np.array(column, dtype)
        for column, dtype in zip(
            list(zip(*found, strict=True)) or [(), (), ()], (np.int32, np.uint8, np.int32), strict=True
        )
    )
    for mine, theirs in zip(
        pairing.pair_up(key, kind, name), plain_pairing.pair_up(key, kind, name), strict=True
    ):
        assert mine.tolist() == theirs.tolist()


@pytest.mark.slow
@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(events(), min_size=1, max_size=25))
def test_a_trace_holds_what_the_file_says(tmp_path: Path, found: list[dict[str, Any]]) -> None:
    near = [
        event for event in found if event["ts"] < 10**14
    ]  # far ones are left out or clamp; test_chrome_trace.py has them
    if not near:
        return
    trace = opened(tmp_path, near)
    durations: dict[str, list[int]] = {}
    on_stacks = trace.kind_of_line[trace.event_line] == 0
    for (_, _, name, _, duration), on_stack in zip(rows(trace), on_stacks.tolist(), strict=True):
        if on_stack:
            durations.setdefault(name, []).append(duration)
    for name in {event["name"] for event in near if event["ph"] == "i"}:
        for _ in range(sum(event["ph"] == "i" and event["name"] == name for event in near)):
            durations[name].remove(0)
    assert {name: sorted(values) for name, values in durations.items() if values} == plain_durations(near)
    for line in range(len(trace.lines)):
        part = slice(trace.line_offsets[line], trace.line_offsets[line + 1])
        start, duration = trace.events["start_ps"][part], trace.events["duration_ps"][part]
        assert ((np.diff(start) > 0) | ((np.diff(start) == 0) & (np.diff(duration) <= 0))).all()
    slices = {
        (name, trace.info.start_ns * 1000 + start, duration) for _, _, name, start, duration in rows(trace)
    }
    assert {
        (event["name"], ps(event["ts"]), ps(event["dur"])) for event in near if event["ph"] == "X"
    } <= slices
    assert len(trace.samples) == sum(
        isinstance(value, (int, float)) for e in near if e["ph"] == "C" for value in e["args"].values()
    )


def whole_file(chance: random.Random) -> bytes:
    args = {"name": "x", "v": 3, "sort_index": 2, "deep": [{"a": '\\"'}] * 2}
    found = [
        {
            "ph": chance.choice("XBEbensftCMNODP"),
            "name": "n" * (i % 4),
            "ts": i / 3,
            "dur": 2,
            "pid": i % 3,
            "tid": "t",
            "id": i % 5,
            "args": args,
        }
        for i in range(60)
    ]
    return json.dumps({"traceEvents": found, "stackFrames": {"1": {"name": "f"}}}).encode()


def damaged(whole: bytes, chance: random.Random) -> bytes:
    data = bytearray(whole)
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(data))
        kind = chance.randrange(4)
        if kind == 0:
            data[at] = chance.randrange(256)
        elif kind == 1:
            del data[at : at + chance.randrange(1, 200)]
        elif kind == 2:
            data[at:at] = chance.choice([b'"', b"{", b"]", b"\\", b"1e999", b"-", b"NaN", b"\x00", b"9" * 40])
        else:
            data = data[: max(at, 1)]
        data = data or bytearray(b"[")
    return bytes(data)


def message_of(function: Callable[[], Any]) -> str:
    """What a failure that was foreseen says, empty where there was none."""
    try:
        function()
    except ProfilerError as error:
        return error.message
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_end_in_an_error_or_a_trace(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    whole = whole_file(chance)
    until = time.monotonic() + 4
    n_opened = 0
    for _ in range(250):
        data = damaged(whole, chance)
        message = message_of(partial(opened, tmp_path, data))
        if message:
            assert "h.trace.json" in message
            continue
        n_opened += 1
        trace = opened(tmp_path, data)
        assert len(trace.event_line) == trace.n_events
        assert trace.flows["to_event"].max(initial=-1) < trace.n_events
        assert (trace.events["duration_ps"] >= 0).all()
        for event in range(0, trace.n_events, 17):
            message = message_of(partial(trace.source.event_stats, trace, event))
            assert not message or "cannot be read" in message
        if time.monotonic() > until:
            break
    assert n_opened > 10
