"""Which compiled program a page shows: the run's programs as a table, and the one that a parameter names."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tb_tpuprof.errors import BadParameter
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Availability
from tb_tpuprof.tools.spec import Values, number, text
from tb_tpuprof.trace.hlo_programs import Program, Programs

REASON = "the trace holds no HLO of compiled programs."
REMEDY = (
    "XLA writes the HLO of what it runs into the profile: capture with JAX, or with TensorFlow and "
    "jit_compile=True, and leave `enable_hlo_proto` on."
)
PROGRAM_COLUMNS = (
    text("program", "Program", "Its title: name and id"),
    text("program_id", "Id"),
    number("hlo_bytes", "HLO", "bytes", "Size of its HLO"),
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


def program_values(programs: Iterable[Program]) -> dict[str, Values]:
    """Values of PROGRAM_COLUMNS. Ids are text: they are unsigned 64-bit numbers."""
    listed = list(programs)
    return {
        "program": [program.title for program in listed],
        "program_id": [str(program.program_id % 2**64) for program in listed],
        "hlo_bytes": np.array([program.size_bytes for program in listed], np.int64),
    }
