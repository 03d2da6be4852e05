"""The compiled programs of a trace that ran during the capture: XLA writes the HLO of every program that it
has compiled so far.
"""

from __future__ import annotations

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.ops.hlo import hlo_ops
from tb_tpuprof.trace.trace import Trace


@once
def ran_programs(trace: Trace) -> frozenset[str]:
    """Titles of the programs with at least one traced operation. XLA:CPU events may name their program by
    name only.
    """
    titles = set()
    for number, title in hlo_ops(trace).programs.items():
        program = trace.programs.get(number) or trace.programs.find(title.rpartition("(")[0])
        titles.add(program.title if program else title)
    return frozenset(titles)
