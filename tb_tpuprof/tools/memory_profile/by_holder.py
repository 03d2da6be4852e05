"""Tables of the allocators of the chosen memory's contents: PyTorch's modules, and operations."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.flame.module_contents import ModuleContents, module_contents
from tb_tpuprof.analysis.flame.modules import OUTSIDE
from tb_tpuprof.analysis.memory.events import MemoryEvents
from tb_tpuprof.analysis.memory.holders import Holders, allocations, holders
from tb_tpuprof.analysis.memory.peak import active_allocations
from tb_tpuprof.tools.memory_profile.declared import MODULES, OPERATIONS
from tb_tpuprof.tools.memory_profile.tables import OLDER as OLDER_ALLOCATIONS
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.spec import Values, known_texts
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_bytes, format_fraction

N_ROWS = 2000
OLDER = f"({OLDER_ALLOCATIONS})"
NO_OP = "(no operation recorded)"
BETWEEN = " › "
_WORTH_NAMING = 0.1  # of the memory in use
Int64s = npt.NDArray[np.int64]


def holder_tables(
    trace: Trace, events: MemoryEvents, memory: int, event: int, moment: str
) -> dict[str, Table]:
    """Both tables; none of modules if the trace has none, and only for PyTorch, whose allocations name their
    nested operations.
    """
    if not events.stats.has("allocated_for"):
        return {}
    older = active_allocations(events, memory, event).older_bytes
    used = int(events.used_bytes[event])
    tables = {}
    by_module = module_contents(trace, events, memory, event)
    if by_module is not None and len(by_module):
        tables["modules"] = _modules_table(by_module, older, used, moment)
    rows = allocations(events, memory)
    by_op = holders(events, rows, np.asarray(events.op[rows], np.int64), event)
    if len(by_op):
        tables["operations"] = _operations_table(by_op, events, older, used, moment)
    return tables


def _modules_table(by_module: ModuleContents, older: int, used: int, moment: str) -> Table:
    n = min(len(by_module), N_ROWS)
    names = [BETWEEN.join(by_module.layers(row)) for row in range(n)]
    inner = by_module.with_inner_bytes[:n]
    return MODULES.fill(
        {
            "module": [*names, *[OLDER] * (older > 0)],
            "phase": known_texts([*(by_module.phase(row) for row in range(n)), *[""] * (older > 0)]),
            **_columns(by_module.held, n, older),
            "with_submodules_bytes": np.concatenate((inner, [older] * (older > 0))).astype(np.int64),
        },
        _note(len(by_module), moment, used),
        titles={"at_bytes": f"In use {moment}", "n_at": f"Allocations in use {moment}"},
    )


def _operations_table(by_op: Holders, events: MemoryEvents, older: int, used: int, moment: str) -> Table:
    n = min(len(by_op), N_ROWS)
    names = [events.strings.get(key) if key >= 0 else NO_OP for key in by_op.key[:n].tolist()]
    return OPERATIONS.fill(
        {"op": [*names, *[OLDER] * (older > 0)], **_columns(by_op, n, older)},
        _note(len(by_op), moment, used),
        titles={"at_bytes": f"In use {moment}", "n_at": f"Allocations in use {moment}"},
    )


def _columns(held: Holders, n: int, older: int) -> dict[str, Values]:
    """The numbers of the first rows, and of a last one for memory from before the capture."""
    has_older = older > 0
    at_bytes = np.concatenate((held.at_bytes[:n], [older] * has_older)).astype(np.int64)

    def numbers(values: Int64s) -> Values:
        return (
            np.concatenate((values[:n].astype(np.float64), [np.nan] * has_older)) if has_older else values[:n]
        )

    return {
        "at_bytes": at_bytes,
        "fraction": at_bytes / (int(held.at_bytes.sum()) + older or 1),
        "n_at": numbers(held.n_at),
        "most_bytes": numbers(held.most_bytes),
        "allocated_bytes": numbers(held.allocated_bytes),
        "n_allocated": numbers(held.n_allocated),
        "kept_bytes": numbers(held.kept_bytes),
        "n_kept": numbers(held.n_kept),
    }


def _note(n_rows: int, moment: str, used: int) -> str:
    cut = f"the first {N_ROWS:,} of {n_rows:,} · " if n_rows > N_ROWS else ""
    return f"{cut}{format_bytes(used)} {moment}"


def module_sentence(table: Table) -> str:
    """The module and phase with most memory at the peak; empty if that is little."""
    cells = {column.name: column for column in table.columns}
    names, shares = cells["module"], cells["fraction"].values.tolist()
    texts = [str((names.strings or ())[code]) for code in names.values.tolist()]
    row = next((i for i, text in enumerate(texts) if text not in (OUTSIDE, OLDER)), -1)
    if row < 0 or shares[row] < _WORTH_NAMING:
        return ""
    phases = cells["phase"]
    phase = str((phases.strings or ())[int(phases.values[row])])
    share = format_fraction(shares[row])
    return (
        f"Of all modules, `{texts[row]}` had allocated the largest part of it: {share}, in the {phase} pass."
    )
