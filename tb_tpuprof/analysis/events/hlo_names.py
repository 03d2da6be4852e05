"""From the HLO that a trace contains: framework names of compiled instructions, and the number of devices
that a program is spread over.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.native import spans
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.trace.windowed_fields import messages_within

if TYPE_CHECKING:  # a process that only reads events starts faster without it
    from tb_tpuprof.trace.hlo import HloModule

_STATS = ("Hlo Proto", "HLO Proto")


@dataclass(frozen=True)
class Instruction:
    """An HLO instruction: its opcode and the framework's name of the operation that it was compiled from."""

    opcode: str
    op_name: str


class Instructions:
    """Instructions of one program by name; none if its HLO is missing or unreadable."""

    def __init__(self, trace: Trace, program: int) -> None:
        self._module: HloModule | None = None
        with contextlib.suppress(ProfilerError):
            self._module = trace.programs.module(program) if program != -1 else None

    def get(self, name: str) -> Instruction | None:
        """The instruction with this name, None if there is none."""
        module = self._module
        row = module.by_name.get(name, -1) if module else -1
        return Instruction(module.opcode(row), module.text("op_name", row)) if module and row >= 0 else None


def replicas(trace: Trace) -> tuple[int, int]:
    """(replicas, devices per replica) of the program that runs on most devices; (0, 0) if no program in the
    trace states it.

    HloModuleProto.device_assignment (15) → replica_count (1), computation_count (2: partitions, the devices
    of a replica).
    """
    assignments = [(0, 0)]
    for key in _STATS:
        for _owner, position, size in trace.metadata_stats.spans(key):
            try:
                modules = messages_within(trace.source, position, size, 1)
                messages = [
                    message for module in modules for message in messages_within(trace.source, *module, 15)
                ]
                assignments += [_assignment(trace.source.read(*message)) for message in messages]
            except ProfilerError:
                continue
    return max(assignments, key=lambda pair: pair[0] * pair[1])


def _assignment(message: bytes) -> tuple[int, int]:
    data = np.frombuffer(message, np.uint8)
    values, sizes, _, _ = spans(
        data, np.zeros(1, np.int64), np.array([len(data)], np.int64), np.array((1, 2), np.int64)
    )
    replicas, partitions = np.where(sizes > 0, 0, values)[0].tolist()
    return replicas, partitions
