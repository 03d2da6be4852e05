"""A synthetic TPU run of one program with many instructions: what a large language model's step looks like.

Each instruction of the entry computation runs once on one core, for 1 to 2 µs, and has a buffer in one
allocation; each hundredth is a fusion. The heap simulator's events place every buffer: it lives until it was
read, and each twentieth until the end of its layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.ingest.hlo_protos import array, computation, instruction, proto
from tests.synthetic import PlaneWriter, Stat, memory_accesses, write_run

N_INSTRUCTIONS = 200_000
TITLE = "jit_f(7)"
_US = 1_000_000
_SPREAD = 7_919  # makes the times of operations differ
_OPCODES = ("add", "multiply", "exponential", "copy")
_DIMS = (128, 512)
_N_BYTES = 4 * _DIMS[0] * _DIMS[1]
_LAYER, _FUSION_EVERY, _KEPT_EVERY, _N_BODIES = 1000, 100, 20, 50
_ALLOC, _FREE = 0, 1


def opcode_of(i: int) -> str:
    """What the i-th instruction of the entry computation does; the first is its parameter."""
    return "fusion" if i % _FUSION_EVERY == 0 else _OPCODES[i % 4]


def large_program(folder: Path, n: int = N_INSTRUCTIONS) -> Path:
    """Write the run: HLO of `n` instructions in the entry computation and their buffers in the file, an event
    for each on one core.
    """
    from tb_tpuprof.ingest.xspace.messages import xspace_class

    space = xspace_class()()
    PlaneWriter(space, "/host:metadata").metadata(TITLE, {"Hlo Proto": large_proto(n)})
    plane = PlaneWriter(space, "/device:TPU:0")
    plane.stats(
        plane.plane,
        {
            "device_type_string": "TPU v5 lite",
            "peak_teraflops_per_second": 197.0,
            "peak_hbm_bw_gigabytes_per_second": 819.0,
        },
    )
    line = plane.line("XLA Ops", 1, 1)
    for i in range(2, n + 1):
        opcode = opcode_of(i)
        name, category = f"{opcode}.{i}", "loop fusion" if opcode == "fusion" else opcode
        stats: dict[str, Stat] = {
            "program_id": 7,
            "symbol_id": i,
            "hlo_category": category,
            "tf_op": f"{_op_name(i)}:",
            "flops": 65_536,
            "bytes_accessed": 524_288,
            "memory_access_breakdown": memory_accesses((1, 1, 262_144 + i), (2, 1, 262_144)),
        }
        plane.metadata(f"%{name} = f32[128,512] {opcode}()", stats, name)
        plane.event(line, f"%{name} = f32[128,512] {opcode}()", i * 2 * _US, _US + i * _SPREAD % _US)
    space.hostnames.append(b"synthetic-tpu")
    return write_run(folder, {"synthetic-tpu": space.SerializeToString()})


def large_proto(n: int) -> bytes:
    """The serialized HloProto."""
    shape = array(*_DIMS)
    program: dict[int, Any] = {1: [shape], 2: shape, 3: ["x"]}
    main = computation(1, "main", list(_entry(n, shape)), n) | {4: program}
    bodies = [
        computation(2 + k, f"body.{k}", _body(n + 1 + 3 * k, shape), n + 3 + 3 * k) | {4: program}
        for k in range(_N_BODIES)
    ]
    return proto(
        [*bodies, main],
        f2="main",
        buffers=_buffers(n),
        f4=program,
        f7={1: [{1: 1, 2: {1: tuple(range(1, n + 1))}}]},
    )


def _op_name(i: int) -> str:
    return f"jit(f)/layer_{i // _LAYER}/op_{i % 50}"


def _entry(n: int, shape: Any) -> Iterator[dict[int, Any]]:
    yield instruction(1, "parameter", shape, f9=0)
    for i in range(2, n + 1):
        operands = [i - 1] * (2 if opcode_of(i) in _OPCODES[:2] else 1)
        fused = (
            {"f11": "kLoop", "f38": (2 + i // _FUSION_EVERY % _N_BODIES,)} if opcode_of(i) == "fusion" else {}
        )
        yield instruction(i, opcode_of(i), shape, operands, f7={2: _op_name(i)}, **fused)


def _body(first: int, shape: Any) -> list[dict[int, Any]]:
    return [
        instruction(first, "parameter", shape, f9=0),
        instruction(first + 1, "negate", shape, [first]),
        instruction(first + 2, "add", shape, [first + 1, first]),
    ]


def _buffers(n: int) -> dict[int, Any]:
    """One logical buffer for each instruction; all but the parameter's and the result's are in the single
    temporary allocation.
    """
    logical = [{1: i, 2: _N_BYTES, 3: {4: i}, 4: 0} for i in range(1, n + 1)]
    events: list[dict[int, Any]] = []
    free = list(range(_LAYER // _KEPT_EVERY + 8))[::-1]
    slots: dict[int, int] = {}
    ends: dict[int, list[int]] = {}
    for i in range(2, n):
        slots[i] = free.pop()
        events.append({1: _ALLOC, 2: i, 3: "main", 4: f"{opcode_of(i)}.{i}"})
        ends.setdefault(min((i // _LAYER + 1) * _LAYER, n) if i % _KEPT_EVERY == 0 else i + 1, []).append(i)
        for done in ends.pop(i, []):
            events.append({1: _FREE, 2: done, 3: "main", 4: f"{opcode_of(done)}.{done}"})
            free.append(slots[done])
    for rest in (done for done_at in ends.values() for done in done_at):
        events.append({1: _FREE, 2: rest, 3: "main", 4: f"{opcode_of(rest)}.{rest}"})
    temporary = {
        1: 1,
        2: (max(slots.values()) + 1) * _N_BYTES,
        8: 0,
        9: [{1: i, 2: slot * _N_BYTES, 3: _N_BYTES} for i, slot in slots.items()],
    }
    sizes_by_id = {2: _N_BYTES, 8: 0}
    allocations = [
        {1: 0, **sizes_by_id, 5: 1, 6: 0, 9: [{1: 1, 2: 0, 3: _N_BYTES}]},
        temporary,
        {1: 2, **sizes_by_id, 7: 1, 9: [{1: n, 2: 0, 3: _N_BYTES}]},
    ]
    return {1: logical, 3: allocations, 4: [{1: events, 2: 1, 3: 1}]}
