"""Counts and totals of queries on real runs (TPU v6e, MI300X, V100, a PyTorch job on an H100), held against a
plain reading of the files: protobuf fields and JSON, nothing of this project.
"""

from __future__ import annotations

import gzip
import json
import os
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.session import Session
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.tools.trace_viewer.view import TOOL
from tests.plain_protobuf import plain_fields
from tests.tools.trace_viewer.questions import rows

pytestmark = pytest.mark.skipif("TPUPROF_CORPUS" not in os.environ, reason="TPUPROF_CORPUS is not set")

TPU = "xprof_tpu_inference_2_old/plugins/profile/run"
AMD = "tracelens_mi300_jax/plugins/profile/jax08_attention"
V100 = "xprof_gpu_multi_worker/plugins/profile"
H100 = "tracelens_torch/traces/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
FIRST_DERIVED, US = 0xDEADBEEF, 10**6


@dataclass
class Plain:
    """An event as the file has it. `args` are those of the event and of its name."""

    name: str
    line: str
    plane: str
    duration_ps: int
    args: dict[str, Any] = field(default_factory=dict)
    full_name: str = ""


def corpus(path: str) -> Path:
    return Path(os.environ["TPUPROF_CORPUS"]) / path


def of_xspace(path: Path) -> Iterator[Plain]:
    """Events of an XSpace except those on lines that a profiler's back end derived, or counters."""
    for number, plane in plain_fields(path.read_bytes()):
        if number == 1:
            yield from _of_plane(list(plain_fields(plane)))


def _of_plane(fields: list[tuple[int, Any]]) -> Iterator[Plain]:
    plane = next((value.decode() for number, value in fields if number == 2), "")
    names: dict[int, str] = {}
    for number, entry in fields:
        if number == 5:
            message = dict(plain_fields(dict(plain_fields(entry)).get(2, b"")))
            names[message.get(1, 0)] = message.get(2, b"").decode("utf-8", "replace")
    kinds: dict[int, Plain] = {}
    for number, entry in fields:
        if number == 4:
            pairs = list(plain_fields(dict(plain_fields(entry)).get(2, b"")))
            message = dict(pairs)
            full = message.get(2, b"").decode("utf-8", "replace")
            shown = message.get(4, b"").decode("utf-8", "replace") or full
            kinds[dict(plain_fields(entry)).get(1, 0)] = Plain(
                shown, "", plane, 0, _stats(pairs, 5, names), full
            )
    for number, line in fields:
        pairs = list(plain_fields(line)) if number == 3 else []
        message = dict(pairs)
        title = (message.get(11) or message.get(2) or b"").decode("utf-8", "replace")
        if FIRST_DERIVED <= message.get(1, 0) & 0xFFFFFFFF < FIRST_DERIVED + 500 or title == "_counters_":
            continue
        for inner, event in pairs:
            if inner != 4:
                continue
            stated = list(plain_fields(event))
            facts = dict(stated)
            if 5 in facts:
                continue  # only a number of occurrences: it has no place in time
            kind = kinds.get(facts.get(1, 0), Plain("(unknown event)", "", plane, 0))
            args = {**kind.args, **_stats(stated, 4, names)}
            yield Plain(kind.name, title, plane, facts.get(3, 0), args, kind.full_name)


def _stats(pairs: list[tuple[int, Any]], number: int, names: dict[int, str]) -> dict[str, Any]:
    stats: dict[str, Any] = {}
    for own, value in pairs:
        if own == number:
            stat = dict(plain_fields(value))
            key = names.get(stat.get(1, 0), "")
            for kind in (2, 3, 4, 5, 7):
                if kind in stat:
                    stats[key] = _value(kind, stat[kind], names)
    return stats


def _value(kind: int, value: Any, names: dict[int, str]) -> Any:
    if kind == 2:
        return struct.unpack("<d", value)[0]
    if kind == 5:
        return value.decode("utf-8", "replace")
    if kind == 7:
        return names.get(value, "")
    return value - 2**64 if kind == 4 and value >= 2**63 else value


def of_kineto(path: Path) -> Iterator[Plain]:
    for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]:
        if event.get("ph") == "X":
            args = {**event.get("args", {}), "cat": event.get("cat")}
            # Microseconds with three digits: whole nanoseconds.
            yield Plain(event["name"], "", "", round(float(event["dur"]) * 1000) * 1000, args)


@cache
def opened(path: str) -> tuple[Session, tuple[Plain, ...]]:
    place = corpus(path)
    if path.endswith(".gz"):
        return Session(str(place), cache=False), tuple(of_kineto(place))
    (file,) = sorted(place.rglob("*.xplane.pb"))[:1]
    return Session(str(file), cache=False), tuple(of_xspace(file))


def ask(path: str, question: str, **params: object) -> Payload:
    return TOOL.run(opened(path)[0], None, {"of": "recorded", **params}, question)


def number(value: Any) -> float:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else float("nan")


def as_text(event: Plain) -> list[str]:
    return [value if isinstance(value, str) else json.dumps(value) for value in event.args.values()]


CASES: list[tuple[str, str, Callable[[Plain], bool]]] = [
    (AMD, "name=loop_convert_fusion", lambda e: e.name == "loop_convert_fusion"),
    (AMD, "loop_convert_fusion", lambda e: "loop_convert_fusion" in e.name),
    (AMD, "track:Stream dur>=10us -name~^Cijk", lambda e: "Stream" in e.line and e.duration_ps >= 10 * US and not e.name.startswith("Cijk")),
    (TPU, "arg.flops=1342177280", lambda e: e.args.get("flops") == 1342177280),
    (TPU, "arg:1342177280", lambda e: any("1342177280" in str(value) for value in (*e.args.values(), e.full_name))),
    (TPU, 'arg.full_name:"copy-done.2), kind=kLoop"', lambda e: "copy-done.2), kind=kloop" in e.full_name.lower()),
    (TPU, "category:fusion", lambda e: "fusion" in str(e.args.get("hlo_category", "")).lower()),
    (TPU, "arg.run_id>0", lambda e: number(e.args.get("run_id")) > 0),
    (TPU, 'track="XLA Ops" dur:10us..1ms -name:copy', lambda e: e.line == "XLA Ops" and 10 * US <= e.duration_ps <= 1000 * US and "copy" not in e.name.lower()),
    (V100, "kind:stream", lambda e: e.line.startswith("Stream #")),
    (V100, "any:MatMul", lambda e: any("matmul" in text.lower() for text in (e.name, e.full_name, *map(str, e.args.values())))),
    (V100, "arg.correlation_id>0 dur<5us", lambda e: number(e.args.get("correlation_id")) > 0 and e.duration_ps < 5 * US),
    (H100, "arg.grid=[17888,1,1]", lambda e: e.args.get("grid") == [17888, 1, 1]),
    (H100, "arg:[17888, 1, 1]", lambda e: any("[17888, 1, 1]" in text for text in as_text(e))),
    (H100, "arg.cat=kernel dur>20us", lambda e: e.args["cat"] == "kernel" and e.duration_ps > 20 * US),
    (H100, 'arg."Input Dims":[[1,', lambda e: "[[1," in json.dumps(e.args.get("Input Dims", "")).replace(" ", "")),
    (H100, 'arg."External id">100 -name:aten', lambda e: number(e.args.get("External id")) > 100 and "aten" not in e.name.lower()),
]  # fmt: skip


def is_on_recorded_track(path: str, event: Plain) -> bool:
    """Annotations that PyTorch's profiler repeats for GPUs are drawn as steps, not as recorded events."""
    return path != H100 or event.args["cat"] not in ("gpu_user_annotation",)


@pytest.mark.parametrize(("path", "query", "matches"), CASES, ids=[query for _, query, _ in CASES])
def test_counts_and_totals_are_those_of_the_file(
    path: str, query: str, matches: Callable[[Plain], bool]
) -> None:
    found = [event for event in opened(path)[1] if matches(event) and is_on_recorded_track(path, event)]
    assert found
    payload = ask(path, "slices", query=query)
    assert payload.scalars["n_matches"].value == len(found)
    assert payload.scalars["total_ps"].value == sum(event.duration_ps for event in found)
    by_name: dict[str, list[int]] = defaultdict(list)
    for event in found:
        # Steps are one group, whatever their number.
        by_name[
            event.name.partition("#")[0] if event.name.startswith("ProfilerStep#") else event.name
        ].append(event.duration_ps)
    groups = {row["group"]: row for row in rows(ask(path, "groups", query=query, limit=100_000), "groups")}
    assert {name: (row["n"], row["total_ps"], row["max_ps"]) for name, row in groups.items()} == {
        name: (len(times), sum(times), max(times)) for name, times in by_name.items()
    }


def test_the_known_numbers() -> None:
    amd = ask(AMD, "slices", query="name=loop_convert_fusion")
    assert (amd.scalars["n_matches"].value, amd.scalars["total_ps"].value) == (45, 567_161_000)
    assert amd.scalars["n_derived"].value == 79
    assert ask(TPU, "slices", query="arg.flops=1342177280").scalars["n_matches"].value == 1212
    assert ask(H100, "slices", query="any:[17888, 1, 1]").scalars["n_matches"].value == 691
