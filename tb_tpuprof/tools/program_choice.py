"""Which compiled program a page shows: the run's programs as a table, and the one that a parameter names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_tpuprof.analysis.hlo.memories import ProgramPeak
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Availability
from tb_tpuprof.tools.columns import text_column
from tb_tpuprof.tools.payload import Column, Table
from tb_tpuprof.trace.hlo_programs import Program, Programs

REASON = "the trace holds no HLO of compiled programs."
REMEDY = (
    "XLA writes the HLO of what it runs into the profile: capture with JAX, or with TensorFlow and "
    "jit_compile=True, and leave `enable_hlo_proto` on."
)
_HOSTS_TO_ASK = 4


def has_programs(session: Session) -> Availability:
    """Whether one of the first hosts has HLO."""
    found = any(len(session.programs(host)) for host in session.hosts[:_HOSTS_TO_ASK])
    return Availability() if found else Availability(REASON, REMEDY)


def program_named(programs: Programs, wanted: str) -> Program:
    """The program of that title, id or name. Raises BadParameter."""
    found = programs.find(wanted)
    if found is None:
        known = ", ".join(program.title for program in list(programs)[:20])
        raise BadParameter("program", wanted, f"the title, id or name of a program, such as {known}")
    return found


def programs_table(peaks: Sequence[ProgramPeak]) -> Table:
    """All programs, in the file's order. Ids are text: they are unsigned 64-bit numbers."""
    known = [np.nan if item.peak_bytes is None else float(item.peak_bytes) for item in peaks]
    return Table(
        "Programs",
        (
            text_column("program", "Program", [item.program.title for item in peaks]),
            text_column("program_id", "Id", [str(item.program.program_id % 2**64) for item in peaks]),
            Column(
                "hlo_bytes",
                "HLO",
                np.array([item.program.size_bytes for item in peaks], np.int64),
                "bytes",
                description="Size of its HLO",
            ),
            Column(
                "peak_bytes",
                "Peak",
                np.array(known),
                "bytes",
                description="Main memory that it needs at its peak",
            ),
        ),
    )
