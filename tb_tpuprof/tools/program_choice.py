"""The compiled program that a page shows: the run's programs as a table, and the one that a parameter
names.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tb_tpuprof.errors import BadParameter
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Availability
from tb_tpuprof.tools.spec import Values, number, text
from tb_tpuprof.trace.hlo_programs import Program, Programs

REASON = "no HLO of compiled programs was found."  # nor need there be a trace
REMEDY = (
    "XLA writes the HLO of the programs it runs into the profile: capture with JAX, or with TensorFlow "
    "and jit_compile=True, and leave `enable_hlo_proto` on."
)
PROGRAM_COLUMNS = (
    text("program", "Program", "Its title: name and id"),
    text("program_id", "Id", "Number of the program in the trace"),
    number("hlo_bytes", "HLO", "bytes", "Size of its HLO"),
)
_HOSTS_TO_CHECK = 4


def has_programs(session: Session) -> Availability:
    """Whether one of the first hosts has HLO."""
    has_any = any(len(session.programs(host)) for host in session.hosts[:_HOSTS_TO_CHECK])
    return Availability() if has_any else Availability(REASON, REMEDY, "no HLO")


def program_named(programs: Programs, name: str) -> Program:
    """The program of that title, id or name. Raises BadParameter."""
    program = programs.find(name)
    if program is None:
        examples = ", ".join(candidate.title for candidate in list(programs)[:20])
        raise BadParameter("program", name, f"the title, id or name of a program, such as {examples}")
    return program


def program_values(programs: Iterable[Program]) -> dict[str, Values]:
    """Values of PROGRAM_COLUMNS. Ids are text: they are unsigned 64-bit numbers."""
    listed = list(programs)
    return {
        "program": [program.title for program in listed],
        "program_id": [str(program.program_id % 2**64) for program in listed],
        "hlo_bytes": np.array([program.size_bytes for program in listed], np.int64),
    }
