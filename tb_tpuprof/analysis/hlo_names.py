"""Framework names of a compiler's instructions, read from the HLO protos that a trace carries.

Only what is needed is decoded: HloProto.hlo_module (1) → computations (3) → instructions (2) → name (1), opcode (2) and
metadata (7) → op_name (2). Malformed bytes end the reading of what encloses them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.trace.wire import read_fields

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
    for module in _messages(proto, 1):
        for computation in _messages(module, 3):
            for instruction in _messages(computation, 2):
                texts = {1: b"", 2: b"", 7: b""}
                texts.update(
                    (number, value) for number, _, value in read_fields(instruction) if number in texts and isinstance(value, bytes)
                )
                op_name = next(_messages(texts[7], 2), b"")
                name, opcode = (text.decode("utf-8", "replace") for text in (texts[1], texts[2]))
                result[name] = Instruction(opcode, op_name.decode("utf-8", "replace"))
    return result


def _messages(data: bytes, wanted: int) -> Iterator[bytes]:
    return (value for number, _, value in read_fields(data) if number == wanted and isinstance(value, bytes))
