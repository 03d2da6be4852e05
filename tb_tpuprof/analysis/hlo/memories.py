"""Memory of a host's programs, computed on first use; the most recent results are kept."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import RLock

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.hlo.memory import SpaceMemory, colors_of, space_memory
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_programs import Program
from tb_tpuprof.trace.trace import Trace

_KEPT = 8
# Limits for computing the peaks of all programs, so that it takes a moment and not a minute.
_MOST_BYTES, _MOST_PROGRAMS = 24 * 2**20, 200


@dataclass(frozen=True)
class ProgramPeak:
    """The peak of a program's main memory; None if its HLO has no buffer assignment, is unreadable, or was
    not inspected.
    """

    program: Program
    peak_bytes: int | None


class HloMemories:
    """Memory spaces by program and color; the most recent few are kept. Thread-safe."""

    def __init__(self, trace: Trace) -> None:
        self.programs = trace.programs
        self._kept: OrderedDict[tuple[Program, int], SpaceMemory] = OrderedDict()
        self._lock = RLock()
        self._peaks: tuple[ProgramPeak, ...] | None = None

    def module(self, program: Program) -> HloModule:
        """The program's HLO. Raises TraceFormatError or StorageError if it cannot be read."""
        module = self.programs.module(program)
        assert module is not None
        return module

    def space(self, program: Program, color: int) -> SpaceMemory | None:
        """One memory space, None without a buffer assignment. Raises as `module` does."""
        with self._lock:
            memory = self._kept.get((program, color)) or space_memory(self.module(program), color)
            if memory is not None:
                self._kept[(program, color)] = memory
                self._kept.move_to_end((program, color))
                if len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            return memory

    def colors(self, program: Program) -> list[int]:
        """Memory spaces that the program uses."""
        buffers = self.module(program).buffers
        return colors_of(buffers) if buffers else []

    def peaks(self) -> tuple[ProgramPeak, ...]:
        """The peak of each program, in the file's order; unknown for all if the programs are too many or too
        large to inspect each.
        """
        with self._lock:
            if self._peaks is None:
                is_small = (
                    len(self.programs) <= _MOST_PROGRAMS
                    and sum(p.size_bytes for p in self.programs) <= _MOST_BYTES
                )
                self._peaks = tuple(
                    ProgramPeak(program, self._peak(program) if is_small else None)
                    for program in self.programs
                )
            return self._peaks

    def largest(self, among: frozenset[str] = frozenset()) -> Program | None:
        """The program with the highest peak, else the one with the largest HLO; None without programs.

        Only programs with titles in `among` (those that ran) are considered, if there are any.
        """
        with_peak = [item for item in self.peaks() if item.peak_bytes is not None] or list(self.peaks())
        candidates = [item for item in with_peak if item.program.title in among] or with_peak
        largest_item = max(
            candidates, key=lambda item: (item.peak_bytes or -1, item.program.size_bytes), default=None
        )
        return largest_item.program if largest_item else None

    def _peak(self, program: Program) -> int | None:
        try:
            memory = space_memory(self.module(program), 0)
        except ProfilerError:
            return None
        return memory.peak_bytes if memory else None


@once
def hlo_memories(trace: Trace) -> HloMemories:
    """The memory of the programs of one host."""
    return HloMemories(trace)
