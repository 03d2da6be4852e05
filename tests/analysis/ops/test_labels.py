"""Labels of operations: parts of names, paths of calls, programs; and which HLO instruction an
event names.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.events.hlo_links import hlo_links
from tb_tpuprof.analysis.ops.expressions import expressions, program_name
from tb_tpuprof.analysis.ops.hlo import hlo_ops
from tb_tpuprof.analysis.ops.hlo_times import hlo_times
from tb_tpuprof.analysis.ops.labels import hlo_parts, levels, of_metadata, of_rows, scope_parts
from tb_tpuprof.analysis.ops.ran_programs import ran_programs
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.table import Table
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, Stats, build
from tests.ingest.hlo_protos import array, computation, instruction, proto

BLOCK = array(8, 16)


def program() -> bytes:
    """A product named by a framework, with its source line; a sum without a name; a fusion with a
    file only.
    """
    entry = [
        instruction(1, "parameter", BLOCK, f7={2: "first"}),
        instruction(2, "dot", BLOCK, [1, 1], f7={2: "jit(f)/s/dot_general", 3: "a.py", 4: 12}),
        instruction(3, "add", BLOCK, [2, 1]),
        instruction(4, "negate", BLOCK, [3], f7={2: "jit(f)/neg:Neg", 3: "b.py"}),
    ]
    return proto([computation(1, "main", entry, 4)])


def test_sources_are_those_of_the_innermost_frame() -> None:
    """Where the instruction itself names no file: line 9 of `g`, which line 3 of `f` calls."""
    frames = {
        1: ["a.py", "b.py"],
        2: ["f", "g"],
        3: [{1: 1, 2: 1, 3: 3}, {1: 2, 2: 2, 3: 9}],
        4: [{1: 1}, {1: 2, 2: 1}],
    }
    entry = [
        instruction(1, "parameter", BLOCK),
        instruction(2, "negate", BLOCK, [1], f7={15: 2}),
        instruction(3, "negate", BLOCK, [2], f7={15: 1}),
        instruction(4, "negate", BLOCK, [3]),
    ]
    hlo = proto([computation(1, "main", entry, 4)], f17=frames)
    names = [DrawnEvent(f"module({i})", 0, 0) for i in range(8)]
    metadata = DrawnPlane("/host:metadata", {"x": names}, metadata_stats={"module(7)": {"Hlo Proto": hlo}})
    events = [DrawnEvent("k", 10 * i, 5, {"hlo_op": f"negate.{i}", "program_id": 7}) for i in (2, 3, 4)]
    trace = build([metadata, DrawnPlane("/device:GPU:0", {"Stream #1": events})])
    ops = hlo_ops(trace)
    assert [ops.source[ops.find(7, f"negate.{i}")] for i in (2, 3, 4)] == ["b.py:9", "a.py:3", ""]
    labels = of_rows(trace, np.flatnonzero(trace.event_line == 1))
    sources = [
        labels.texts(int(labels.source[i])) if labels.source[i] >= 0 else "" for i in labels.of.tolist()
    ]
    assert [text.partition(" ")[0] for text in sources] == ["b.py:9", "a.py:3", ""]


def trace_of(kind: str = "GPU") -> Trace:
    """Operations that name instructions by path, an unknown one, one of an unknown program, and a plain
    kernel.
    """
    numbers = {"program_id": 7, "correlation_id": 1}
    events = [
        DrawnEvent("k1", 10, 5, {"hlo_op": "dot.2", **numbers}),
        DrawnEvent("k2", 20, 6, {"hlo_op": "call.1::add.3", **numbers}),
        DrawnEvent("k3", 30, 7, {"hlo_op": "a/b/%negate.4", **numbers}),
        DrawnEvent("k2", 40, 8, {"hlo_op": "add.3", **numbers}),
        DrawnEvent("k4", 50, 9, {"hlo_op": "gone.5", **numbers}),
        DrawnEvent("k5", 60, 9, {"hlo_op": "dot.2", "program_id": 9, "tf_op": "x/y/MatMul:MatMul"}),
        DrawnEvent("k6", 70, 9, {"tf_op": "XlaModule:"}),
        DrawnEvent("k7", 80, 9),
        DrawnEvent("k8", 90, 9, {"tf_op": "u/Add:"}),
    ]
    device = (
        DrawnPlane("/device:GPU:0", {"Stream #1": events})
        if kind == "GPU"
        else DrawnPlane("/host:CPU", {"pool": events})
    )
    metadata = DrawnPlane(
        "/host:metadata",
        {"x": [DrawnEvent("jit_f(7)", 0, 0)]},
        metadata_stats={"jit_f(7)": {"Hlo Proto": program()}},
    )
    # The ids of programs are those of the metadata's rows: seven others come first.
    others = [DrawnEvent(f"module({i})", 0, 0) for i in range(7)]
    metadata.lines["x"] = [*others, *metadata.lines["x"]]
    return build([metadata, device])


def test_links_of_events_to_instructions() -> None:
    trace = trace_of()
    links = hlo_links(trace)
    names = [trace.strings[i] for i in trace.event_names[trace.events["metadata"]].tolist()]
    found = [
        (
            names[event],
            links.ops[op].program_id,
            links.ops[op].name,
            links.ops[op].instruction,
            links.ops[op].path,
        )
        for event, op in zip(links.events.tolist(), links.op.tolist(), strict=True)
    ]
    assert found == [
        ("k1", 7, "dot.2", 1, ("dot.2",)),
        ("k2", 7, "add.3", 2, ("call.1", "add.3")),
        ("k3", 7, "negate.4", 3, ("a", "b", "%negate.4")),
        ("k2", 7, "add.3", 2, ("add.3",)),
        ("k4", 7, "gone.5", -1, ("gone.5",)),
        ("k5", 9, "dot.2", -1, ("dot.2",)),
    ]
    assert links.n_unknown == 2
    assert len(links) == 6
    of_add = [links.ops[i].path for i in links.named(7, "add.3").tolist()]
    assert sorted(of_add) == [("add.3",), ("call.1", "add.3")]
    assert links.named(7, "3").tolist() == []
    assert links.named(8, "add.3").tolist() == []
    assert links.unreadable == {}


def test_links_by_the_stats_of_names() -> None:
    """Of a TPU: by `hlo_op`, or with a symbol by the name itself; the event's own `hlo_op` counts first."""
    stats: dict[str, Stats] = {
        "a": {"program_id": 7, "symbol_id": 1},
        "b": {"program_id": 7, "symbol_id": 2, "hlo_op": "named.2"},
        "c": {"program_id": 8, "hlo_op": "named.3"},
        "d": {"program_id": 8, "symbol_id": 4},
        "e": {"program_id": 8},
        "f": {"symbol_id": 6},
        "g": {"program_id": -1, "symbol_id": 7},
    }
    events = [
        DrawnEvent(name, 10 * i, 5, {"hlo_op": "own.4"} if name == "d" else {})
        for i, name in enumerate(stats)
    ]
    trace = build([DrawnPlane("/device:TPU:0", {"XLA Ops": events}, metadata_stats=stats)])
    display = np.arange(len(trace.metadata), dtype=np.int32)
    columns = {name: trace.metadata[name] for name in ("plane", "id", "name")}
    names = [trace.strings.find(name) for name in stats]
    shown = replace(
        trace,
        metadata=Table(schema.METADATA, {**columns, "display_name": np.array(names, np.int32)[display]}),
    )
    links = hlo_links(shown)
    found = {
        list(stats)[event]: (links.ops[op].program_id, links.ops[op].name)
        for event, op in zip(links.events.tolist(), links.op.tolist(), strict=True)
    }
    assert found == {
        "a": (7, "a"),
        "b": (7, "named.2"),
        "c": (8, "named.3"),
        "d": (8, "own.4"),
        "g": (-1, "g"),
    }


def test_times_of_instructions_by_program() -> None:
    times = hlo_times(trace_of())
    assert list(times) == [7]
    assert times[7].rows.tolist() == [1, 2, 3]
    assert (times[7].time_ps.tolist(), times[7].n.tolist()) == ([5, 14, 7], [1, 2, 1])


def test_operations_of_a_gpu() -> None:
    ops = hlo_ops(trace_of())
    found = sorted(
        (int(number), ops.name[i], ops.category[i], ops.provenance[i], ops.source[i], int(ops.time_ps[i]))
        for i, number in enumerate(ops.program.tolist())
    )
    assert found == [
        (7, "add.3", "non-fusion elementwise", "", "", 6 + 8),  # the first time inside a call
        (7, "dot.2", "dot", "jit(f)/s/dot_general:", "a.py:12", 5),
        (7, "gone.5", "unknown", "", "", 9),
        (7, "negate.4", "non-fusion elementwise", "jit(f)/neg:Neg", "b.py", 7),
        (9, "dot.2", "unknown", "", "", 9),
    ]
    occurrences = dict(zip(ops.name, ops.n_occurrences.tolist(), strict=True))
    assert (len(ops), occurrences.pop("add.3"), set(occurrences.values())) == (5, 2, {1})
    assert (ops.span_ps, ops.n_devices, ops.kind) == (99 - 10, 1, "GPU")
    assert set(ops.metadata.tolist()) == {-1}
    assert set(ops.thread_ps.tolist()) == {-1}
    assert ops.work.flops[ops.find(7, "add.3")] == 2 * 8 * 16  # one per element, two occurrences


def test_text_of_operations() -> None:
    trace = trace_of()
    ops = hlo_ops(trace)
    rows = np.array([ops.find(7, "add.3"), ops.find(7, "gone.5"), ops.find(9, "dot.2")])
    texts = expressions(trace, ops, rows)
    assert texts[0].startswith(
        "%add.3 = f32[8,16]{1,0} add(f32[8,16]{1,0} %dot.2, f32[8,16]{1,0} %parameter.1)"
    )
    assert texts[1:] == ["", ""]
    assert program_name(ops, 12345) == ""


def test_text_of_operations_with_many_operands_is_on_one_line_without_their_numbers() -> None:
    """And without metadata, control, configuration, or long literals."""
    many = [
        instruction(1, "parameter", BLOCK),
        instruction(
            2, "custom-call", BLOCK, [1] * 7, f7={2: "name", 3: "a.py", 4: 7}, f37=(1,), f43=b'{"x":1}'
        ),
    ]
    names = [DrawnEvent(f"module({i})", 0, 0) for i in range(8)]
    hlo = proto([computation(1, "main", many, 2)])
    metadata = DrawnPlane("/host:metadata", {"x": names}, metadata_stats={"module(7)": {"Hlo Proto": hlo}})
    event = DrawnEvent("k", 0, 5, {"hlo_op": "custom-call.2", "program_id": 7})
    trace = build([metadata, DrawnPlane("/device:GPU:0", {"Stream #1": [event]})])
    (text,) = expressions(trace, hlo_ops(trace), np.array([0]))
    operand = "f32[8,16]{1,0} %parameter.1"
    assert text.startswith(f"%custom-call.2 = f32[8,16]{{1,0}} custom-call({', '.join([operand] * 7)})")
    for word in ("metadata", "name", "control", "backend_config", "/*", "\n", "ROOT"):
        assert word not in text


def test_programs_that_ran() -> None:
    assert ran_programs(trace_of()) == {"jit_f(7)", "9"}


def test_labels_of_kernels() -> None:
    trace = trace_of()
    rows = np.flatnonzero(trace.event_line == 1)
    labels = of_rows(trace, rows)
    text = [
        tuple(
            labels.texts(int(column[i])) if column[i] >= 0 else ""
            for column in (labels.module, labels.hlo_op, labels.framework_op, labels.source)
        )
        for i in labels.of.tolist()
    ]
    assert text == [
        ("jit_f(7)", "dot.2", "jit(f)/s/dot_general", "a.py:12"),
        ("jit_f(7)", "call.1::add.3", "", ""),
        ("jit_f(7)", "a/b/%negate.4", "jit(f)/neg:Neg", "b.py"),
        ("jit_f(7)", "add.3", "", ""),
        ("jit_f(7)", "gone.5", "", ""),
        ("", "dot.2", "x/y/MatMul:MatMul", ""),
        ("", "", "", ""),
        ("", "", "", ""),
        ("", "", "u/Add", ""),
    ]
    assert labels.is_known.tolist() == [True] * 6 + [False, False, True]
    taken = labels.taken(np.array([8, 0]))
    assert taken.is_known.tolist() == [True, True]
    assert taken.of.tolist() == [labels.of[8], labels.of[0]]


def test_labels_of_a_tpu_s_operations() -> None:
    stats = {"dot": {"tf_op": "s/dot:Dot", "source": "a.py:3"}, "add": {"tf_op": "t/add:"}}
    events = [DrawnEvent(name, i * 10, 5) for i, name in enumerate(("dot", "x", "add", "dot"))]
    trace = build([DrawnPlane("/device:TPU:0", {"XLA Ops": events}, metadata_stats=stats)])
    labels = of_metadata(trace, np.arange(4))
    framework = [
        labels.texts(int(labels.framework_op[i])) if labels.framework_op[i] >= 0 else ""
        for i in labels.of.tolist()
    ]
    assert framework == ["s/dot:Dot", "", "t/add", "s/dot:Dot"]
    sources = [
        labels.texts(int(labels.source[i])) if labels.source[i] >= 0 else "" for i in labels.of.tolist()
    ]
    assert sources == ["a.py:3", "", "", "a.py:3"]


def test_levels_have_one_key_where_all_levels_above_agree() -> None:
    texts = ("a/x/1", "b/x", "a/x", "a/y", "")
    keys, name = levels(np.array([0, 1, 2, 3, 4, -1, 0]), texts.__getitem__, hlo_parts, 9)
    words = [[name(key) if key >= 0 else "" for key in row] for row in keys.tolist()]
    assert words == [
        ["a", "x", "1"],
        ["b", "x", ""],
        ["a", "x", ""],
        ["a", "y", ""],
        ["", "", ""],
        ["", "", ""],
        ["a", "x", "1"],
    ]
    assert keys[0, :2].tolist() == keys[2, :2].tolist()
    assert keys[0, 1] != keys[1, 1]
    assert len(set(keys[keys >= 0].tolist())) == 6
    limited, _ = levels(np.array([0, 1]), texts.__getitem__, hlo_parts, 2)
    assert limited.shape == (2, 2)
    empty, _ = levels(np.array([-1]), texts.__getitem__, hlo_parts, 2)
    assert empty.shape == (1, 0)


@pytest.mark.parametrize(
    ("name", "scopes"),
    [("a/b/MatMul:MatMul", ("a", "b")), ("MatMul", ()), ("a//b/c", ("a", "b")), ("a:x/y", ()), ("", ())],
)
def test_scopes_around_an_operation(name: str, scopes: tuple[str, ...]) -> None:
    assert scope_parts(name) == scopes
