"""The compiled program that a page shows: the run's programs as a table, and the one that a parameter
names.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.ingest.storage.run_info import LEGACY
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Availability
from tb_tpuprof.tools.spec import Values, number, text
from tb_tpuprof.trace.hlo_programs import Program, Programs

_REASON = "no HLO of compiled programs was found."  # nor need there be a trace
_REMEDY = (
    "XLA writes the HLO of the programs it runs into the profile: capture with JAX, or with TensorFlow "
    "and jit_compile=True, and leave `enable_hlo_proto` on."
)
_REASON_OF_PAGES = "this run has only pages that an older profiler saved, and none has the HLO of programs."
_REMEDY_OF_PAGES = "The page Saved pages shows them. Profile the job again to get its programs."
PROGRAM_COLUMNS = (
    text("program", "Program", "Its title: name and id"),
    text("program_id", "Id", "Number of the program in the trace"),
    number("hlo_bytes", "HLO", "bytes", "Size of its HLO"),
)
_HOSTS_TO_CHECK = 4


def has_programs(session: Session) -> Availability:
    """Whether one of the first hosts has HLO."""
    has_any = any(len(session.programs(host)) for host in session.hosts[:_HOSTS_TO_CHECK])
    return Availability() if has_any else _none_found(session)


def without_programs(tool: str, session: Session) -> ToolUnavailable:
    """The error of a tool that finds no program in the run."""
    lacking = _none_found(session)
    return ToolUnavailable(tool, lacking.reason, lacking.remedy)


def _none_found(session: Session) -> Availability:
    if session.info.state == LEGACY:
        return Availability(_REASON_OF_PAGES, _REMEDY_OF_PAGES, "no HLO")
    return Availability(_REASON, _REMEDY, "no HLO")


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
