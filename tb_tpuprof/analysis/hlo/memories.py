"""The memory of a host's programs, each computed when it is first asked for and kept while it is
looked at.
"""

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
# Peaks of all programs are worth a moment, not a minute.
_MOST_BYTES, _MOST_PROGRAMS = 24 * 2**20, 200


@dataclass(frozen=True)
class ProgramPeak:
    """The peak of a program's main memory; None where its HLO has no buffer assignment, cannot be read, or
    was not looked at.
    """

    program: Program
    peak_bytes: int | None


class HloMemories:
    """Memory spaces by program and color; the last few are kept. Safe for use by several threads."""

    def __init__(self, trace: Trace) -> None:
        self.programs = trace.programs
        self._kept: OrderedDict[tuple[Program, int], SpaceMemory] = OrderedDict()
        self._lock = RLock()
        self._peaks: tuple[ProgramPeak, ...] | None = None

    def module(self, program: Program) -> HloModule:
        """The program's HLO. Raises TraceFormatError or StorageError."""
        module = self.programs.module(program)
        assert module is not None
        return module

    def space(self, program: Program, color: int) -> SpaceMemory | None:
        """One memory space, None without a buffer assignment. Raises TraceFormatError or StorageError."""
        with self._lock:
            found = self._kept.get((program, color)) or space_memory(self.module(program), color)
            if found is not None:
                self._kept[(program, color)] = found
                self._kept.move_to_end((program, color))
                if len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            return found

    def colors(self, program: Program) -> list[int]:
        """Memory spaces in which the program has something."""
        buffers = self.module(program).buffers
        return colors_of(buffers) if buffers else []

    def peaks(self) -> tuple[ProgramPeak, ...]:
        """The peak of each program, in the file's order; unknown for all where there is too much of them to
        look at each.
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

        Of programs with the titles `among` where there are any: those that ran.
        """
        known = [item for item in self.peaks() if item.peak_bytes is not None] or list(self.peaks())
        chosen = [item for item in known if item.program.title in among] or known
        best = max(chosen, key=lambda item: (item.peak_bytes or -1, item.program.size_bytes), default=None)
        return best.program if best else None

    def _peak(self, program: Program) -> int | None:
        try:
            found = space_memory(self.module(program), 0)
        except ProfilerError:
            return None
        return found.peak_bytes if found else None


@once
def hlo_memories(trace: Trace) -> HloMemories:
    """The memory of the programs of one host."""
    return HloMemories(trace)
