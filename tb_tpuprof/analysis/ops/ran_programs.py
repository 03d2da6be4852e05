"""Which of a trace's compiled programs ran while it was captured: XLA writes the HLO of every program it has
compiled so far.
"""

from __future__ import annotations

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.ops.hlo import hlo_ops
from tb_tpuprof.trace.trace import Trace


@once
def ran_programs(trace: Trace) -> frozenset[str]:
    """Titles of programs of which at least one operation was traced. XLA:CPU's events may name theirs by name
    alone.
    """
    found = set()
    for number, title in hlo_ops(trace).programs.items():
        program = trace.programs.get(number) or trace.programs.find(title.rpartition("(")[0])
        found.add(program.title if program else title)
    return frozenset(found)
