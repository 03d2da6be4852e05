"""Which HLO operation each event names: by its stat `hlo_op`, and in command buffers by the instruction that
the kernel ran.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.command_buffers import graph_kernels, named_events
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.stat_rows import distinct_codes, values_at
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.trace import Trace

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class OpTexts:
    """`owner` (ascending) are the events that name an operation, `text` is that name: an id of `strings`,
    which begin with the trace's own strings.

    A kernel of a command buffer is named `command_buffer_1::fusion.3`, a path whose last part is the
    instruction.
    """

    strings: Strings
    owner: Rows
    text: Rows

    def at(self, rows: npt.NDArray[np.integer]) -> Rows:
        """The text of each event, -1 where it names no operation."""
        return values_at(rows, self.owner, self.text, -1)  # type: ignore[arg-type]


@once
def hlo_op_texts(trace: Trace) -> OpTexts:
    """The operations that events name themselves; `hlo_links` adds those that only metadata names (TPU)."""
    owner, text = named_events(trace)
    graphs = graph_kernels(trace)
    matched = np.flatnonzero(graphs.instruction >= 0)
    if not len(matched):
        return OpTexts(trace.strings, owner, text)
    position = np.searchsorted(owner, graphs.events[matched])
    n_rows = int(graphs.instruction.max()) + 1
    keys = (graphs.program[matched], text[position] * n_rows + graphs.instruction[matched])
    programs, of_program = distinct_codes(keys[0])
    graph_rows, of_row = distinct_codes(keys[1])
    pairs, code = distinct_codes(of_program * len(graph_rows) + of_row)
    names = []
    for pair in pairs.tolist():
        graph, row = divmod(int(graph_rows[pair % len(graph_rows)]), n_rows)
        module = trace.programs.module(int(programs[pair // len(graph_rows)]))
        names.append(f"{trace.strings[graph]}::{module.name(row) if module else ''}".encode())
    text = text.copy()
    text[position] = len(trace.strings) + code
    return OpTexts(_joined(trace.strings, names), owner, text)


def _joined(strings: Strings, more: list[bytes]) -> Strings:
    added = Strings.of(more)
    offsets = np.concatenate((strings.offsets, strings.offsets[-1] + added.offsets[1:]))
    return Strings(np.concatenate((strings.blob, added.blob)), offsets)
