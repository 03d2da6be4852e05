"""HLO protos → modules: a small one with an obvious content, damaged and hostile ones, and every one of the
corpus read twice.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.errors import ProfilerError, TraceFormatError
from tb_tpuprof.ingest.hlo.module import decode_hlo
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.native.plain import wire as plain_wire
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_attributes import DotDims
from tb_tpuprof.trace.hlo_shape import Layout, Shape
from tests.ingest.hlo_protos import (
    TUPLE,
    array,
    computation,
    instruction,
    message,
    proto,
    small_proto,
    varint,
)

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["compiled", "plain"])
def module(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> HloModule:
    """The small program, read by the compiled loops and by their twins."""
    if request.param == "compiled" and not IS_COMPILED:
        pytest.skip("the extension is not built")
    if request.param == "plain":
        for name in ("fields", "spans", "ints", "parts", "intern"):
            for where in ("module", "message", "buffers"):
                monkeypatch.setattr(
                    f"tb_tpuprof.ingest.hlo.{where}.{name}", getattr(plain_wire, name), raising=False
                )
    return decode_hlo(small_proto(), "small", 42)


def test_columns(module: HloModule) -> None:
    assert (module.info.name, module.info.program_id, module.info.module_id) == ("jit_f", 42, 7)
    assert module.computation_name(module.info.entry) == "main"
    names = [module.name(row) for row in range(module.n_instructions)]
    assert names == [
        "parameter.11",
        "exponential.12",
        "add.13",
        "parameter.1",
        "parameter.2",
        "dot.3",
        "fusion.4",
    ]
    dot, fusion = module.find("%dot.3"), module.find("fusion.4")
    assert [module.name(row) for row in module.operands[dot]] == ["parameter.1", "parameter.2"]
    assert [module.computation_name(row) for row in module.calls[fusion]] == ["body"]
    assert [module.name(row) for row in module.users[dot]] == ["fusion.4"]
    assert list(module.callers[0]) == [fusion]
    assert module.shape(dot) == Shape(11, (8, 16), (), Layout((1, 0)))
    texts = {key: module.text(key, dot) for key in ("op_type", "op_name", "source_file", "fusion_kind")}
    assert texts == {
        "op_type": "dot_general",
        "op_name": "jit(f)/dot",
        "source_file": "a.py",
        "fusion_kind": "",
    }
    assert (module.instructions["source_line"][dot], module.instructions["stack_frame"][dot]) == (3, 2)
    assert module.text("fusion_kind", fusion) == "kLoop"
    assert module.backend_config(fusion) == b'{"a":"1"}'
    assert module.name(int(module.computations["root"][0])) == "add.13"
    assert module.find("nothing") == -1
    assert module.by_name["add.13"] == 2
    assert module.has_opcode(["parameter"]).tolist() == [True, False, False, True, True, False, False]
    assert module.info.n_damaged == 0


def test_lazy_parts(module: HloModule) -> None:
    dot = module.find("dot.3")
    assert module.attributes(dot).dot == DotDims((1,), (0,))
    assert module.attributes(module.find("fusion.4")).control_predecessors == (dot,)
    assert [module.name(row) for row in module.schedule[1]] == [
        "parameter.2",
        "parameter.1",
        "dot.3",
        "fusion.4",
    ]
    assert [place.text for place in module.frames.stack(2)] == ["a.py:3", "a.py:9"]
    assert [place.function for place in module.frames.stack(3)] == ["f"]  # a frame that is its own parent
    assert module.header.replicas == (2, 4)
    assert module.header.aliases[0].operand == 1


def test_buffers(module: HloModule) -> None:
    buffers = module.buffers
    assert buffers is not None
    defined = [module.name(row) if row >= 0 else "" for row in buffers.logical_buffers["instruction"]]
    assert defined == ["dot.3", "fusion.4", ""]
    assert buffers.shape_index == ((), (1, 0), ())
    assert buffers.logical_buffers["color"].tolist() == [0, 1, 0]
    assert buffers.assigned["buffer"].tolist() == [0, 1]
    assert buffers.assigned["offset"].tolist() == [0, 512]
    assert buffers.assigned_offsets.tolist() == [0, 2, 2]
    assert buffers.allocations["is_entry_parameter"].tolist() == [False, True]
    events = buffers.heap_events
    assert events["kind"].tolist() == [0, 2, 1]
    assert events["buffer"].tolist() == [0, 1, -1]
    assert events["shared_with"].tolist() == [-1, 0, -1]
    assert [module.name(row) if row >= 0 else "" for row in events["instruction"]] == [
        "dot.3",
        "fusion.4",
        "",
    ]
    assert (
        buffers.n_damaged == 2
    )  # the buffer of an instruction, and the event of a buffer, that are not there


def test_shapes_of_every_kind() -> None:
    tiled = Shape(16, (5, 3, 200), (), Layout((2, 1, 0), ((8, 128), (2, 1)), 0, 1))
    assert tiled.text() == "bf16[5,3,200]{2,1,0:T(8,128)(2,1)S(1)}"
    assert (tiled.size_bytes, tiled.padded_bytes) == (6000, 5 * 8 * 256 * 2)
    four_bits = Shape(21, (3,), (), Layout((0,), (), 4))
    assert (four_bits.size_bytes, Shape(21, (3,)).size_bytes) == (2, 3)
    assert four_bits.text() == "s4[3]{0:E(4)}"
    assert Shape(32, (4,)).text() == "f4e2m1fn[4]"
    assert Shape(20, (4,)).size_bytes == 4
    pair = Shape(TUPLE, elements=(tiled, Shape(11)))
    assert (pair.size_bytes, pair.array_bytes) == (16, 6004)
    assert pair.text(with_layout=False) == "(bf16[5,3,200], f32[])"
    assert Shape(11, (2**40, 2**40)).size_bytes == 2**62
    assert Shape(11, (-5, 4)).size_bytes == 0
    assert Shape(11, (8,), (True,)).text() == "f32[<=8]"


def test_strange_references_are_left_out_and_counted() -> None:
    shape = array(2)
    entry = [
        instruction(1, "add", shape, [1, 77]),
        instruction(1, "add", shape, [2]),
        instruction(2, "call", shape, [1], f38=(1, 5)),
    ]
    found = decode_hlo(
        proto([computation(1, "main", entry, 99), computation(1, "main", [], 0)], entry=6), "strange"
    )
    assert found.info.n_damaged == 6
    assert set(found.info.damage) == {
        "1 instructions that share an id",
        "1 operands not in the file",
        "1 called computations not in the file",
        "2 computations without a root",
        "1 entry computation missing",
    }
    assert found.operands[0].tolist()[1] == -1
    assert found.calls[2].tolist()[1] == -1
    assert found.computations["root"].tolist() == [2, -1]


def test_operands_of_another_computation_are_left_out() -> None:
    shape = array(2)
    bodies = [
        computation(2, "a", [instruction(5, "add", shape)], 5),
        computation(1, "main", [instruction(6, "add", shape, [5])], 6),
    ]
    found = decode_hlo(proto(bodies), "x")
    assert found.operands[1].tolist() == [-1]
    assert found.info.damage == ("1 operands of another computation",)


@pytest.mark.slow
def test_a_million_shapes_within_each_other() -> None:
    data = b""
    lengths = []
    size = 0
    for _ in range(10**6):
        lengths.append(size)
        size += 2 + 1 + len(varint(size))
    parts = [b"\x10\x0d\x22" + varint(length) for length in reversed(lengths)]
    data = b"".join(parts)
    entry = [{**instruction(1, "tuple", None), 3: data}]
    start = time.perf_counter()
    found = decode_hlo(proto([computation(1, "main", entry, 1)]), "deep")
    assert found.info.damage == ("1 shapes malformed",)
    assert len(found.shape(0).text()) < 500
    assert time.perf_counter() - start < 20


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"hello", b"\x0a\x05", message({7: 1}), message({3: {1: []}})]
)
def test_what_is_no_program_is_an_error(data: bytes) -> None:
    with pytest.raises(TraceFormatError):
        decode_hlo(data, "x")


def test_a_bare_module_is_read_too() -> None:
    data = small_proto()
    size_bytes = message(
        {1: message({1: "jit_g", 3: [computation(1, "main", [instruction(1, "add", array(2))], 1)], 6: 1})}
    )
    assert decode_hlo(size_bytes, "x").info.name == "jit_g"
    bare = message({1: "jit_g", 3: [computation(1, "main", [instruction(1, "add", array(2))], 1)], 6: 1})
    assert decode_hlo(bare, "x").info.name == "jit_g"
    assert decode_hlo(data, "x").n_instructions == 7


def look_at_everything(module: HloModule) -> None:
    for row in range(module.n_instructions):
        module.attributes(row)
        module.shape(row).text()
    for part in ("users", "callers", "schedule", "buffers", "frames", "header", "by_name"):
        getattr(module, part)
    module.frames.stack(1)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 255), st.integers(0, 10**6))
def test_damaged_programs_are_read_or_refused(at: int, byte: int, cut: int) -> None:
    data = bytearray(small_proto())
    data[at % len(data)] = byte
    with contextlib.suppress(ProfilerError):
        look_at_everything(decode_hlo(bytes(data[: len(data) - cut % 40]), "x"))


def test_pairs_of_thousands_of_devices() -> None:
    """More fields than are taken up one by one, zeros left out of the message as protobuf does; and an
    instruction without any.
    """
    wanted = [[0, 3], [70_000, 0], *([i, i + 1] for i in range(600))]
    pairs = [{key: device for key, device in zip((1, 2), pair, strict=True) if device} for pair in wanted]
    ops = [
        instruction(1, "parameter", array(8)),
        instruction(2, "collective-permute", array(8), [1], f26=7, f52=pairs),
    ]
    module = decode_hlo(np.frombuffer(proto([computation(1, "main", ops, 2)]), np.uint8), "x", 1)
    found = module.attributes(module.find("collective-permute.2"))
    assert found.source_target_pairs.tolist() == wanted
    assert found.channel_id == 7
    assert module.attributes(0).source_target_pairs.shape == (0, 2)


@settings(max_examples=100, deadline=None)
@given(
    st.binary(max_size=80),
    st.sampled_from([3, 7, 8, 15, 16, 17, 21, 30, 33, 40, 48, 49, 52, 57, 68, 74, 87, 92, 93]),
)
def test_attributes_of_any_bytes(data: bytes, field: int) -> None:
    entry = [{**instruction(1, "custom-call", array(2)), field: data}]
    look_at_everything(decode_hlo(proto([computation(1, "main", entry, 1)]), "x"))


def test_a_large_program_is_read_in_time() -> None:
    shape = array(1024, 1024)
    meta = {1: "mul", 2: "jit(step)/layer/mul", 3: "model.py", 4: 5}
    entry = [instruction(n, "multiply", shape, [n - 1, n - 2], f7=meta) for n in range(1, 50_001)]
    data = proto([computation(1, "main", entry, 50_000)])
    start = time.process_time()
    found = decode_hlo(data, "large")
    seconds = time.process_time() - start
    assert found.n_instructions == 50_000
    assert np.array_equal(found.operands[2], [1, 0])
    if IS_COMPILED:
        assert seconds < 1  # about 0.05


def corpus() -> list[Path]:
    folders = [
        ROOT / "demo_logs",
        *([Path(os.environ["TPUPROF_CORPUS"])] if os.environ.get("TPUPROF_CORPUS") else []),
    ]
    return [path for folder in folders for path in sorted(folder.glob("**/*.xplane.pb"))]


@pytest.mark.parametrize("path", corpus(), ids=lambda path: "/".join(path.parts[-2:]))
def test_every_program_of_the_corpus_is_read_whole(path: Path) -> None:
    try:
        trace = open_trace(str(path))
    except TraceFormatError:
        pytest.skip("not a profile")
    for program in trace.programs:
        found = trace.programs.module(program.program_id)
        assert found is not None
        assert found.info.n_damaged == 0, found.info.damage
        look_at_everything(found)
        assert program.name == found.info.name
        assert found.buffers is None or found.buffers.n_damaged == 0
