"""Framework names of a compiler's instructions, read from the HLO protos that a trace carries.

Only what is needed is decoded: HloProto.hlo_module (1) → computations (3) → instructions (2) → name (1), opcode (2) and
metadata (7) → op_name (2). Malformed bytes end the reading of what encloses them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_tpuprof.analysis.proto_fields import fields, messages, number_field
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.trace.trace import Trace

_STATS = ("Hlo Proto", "HLO Proto")


@dataclass(frozen=True)
class Instruction:
    """An HLO instruction: its opcode and the framework's name of the operation that it came from."""

    opcode: str
    op_name: str


def instructions(trace: Trace, program: int) -> dict[str, Instruction]:
    """Instructions of a program by name; empty where the trace has no HLO of it."""
    rows = np.flatnonzero(trace.metadata["id"] == program)
    for key in _STATS:
        for owner, position, size in trace.metadata_stats.spans(key):
            if owner in rows:
                try:
                    return read_instructions(trace.source.read(position, size))
                except ProfilerError:
                    return {}
    return {}


def read_instructions(proto: bytes) -> dict[str, Instruction]:
    """Instructions of a serialized HloProto by name."""
    result: dict[str, Instruction] = {}
    for module in messages(proto, 1):
        for computation in messages(module, 3):
            for instruction in messages(computation, 2):
                texts = {1: b"", 2: b"", 7: b""}
                texts.update((number, value) for number, value in fields(instruction) if number in texts and isinstance(value, bytes))
                op_name = next(messages(texts[7], 2), b"")
                name, opcode = (text.decode("utf-8", "replace") for text in (texts[1], texts[2]))
                result[name] = Instruction(opcode, op_name.decode("utf-8", "replace"))
    return result


def replicas(trace: Trace) -> tuple[int, int]:
    """Replicas, and devices in each, of the program that runs on most devices; (0, 0) where no program in the trace tells.

    HloModuleProto.device_assignment (15) → replica_count (1), computation_count (2: partitions, the devices of a replica).
    """
    found = [(0, 0)]
    for key in _STATS:
        for _owner, position, size in trace.metadata_stats.spans(key):
            try:
                modules = list(messages(trace.source.read(position, size), 1))
            except ProfilerError:
                continue
            assigned = (assignment for module in modules for assignment in messages(module, 15))
            found += [(number_field(assignment, 1), number_field(assignment, 2)) for assignment in assigned]
    return max(found, key=lambda pair: pair[0] * pair[1])
