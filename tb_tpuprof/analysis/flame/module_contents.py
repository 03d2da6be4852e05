"""PyTorch's modules → which of them allocated the contents of a memory: paths of modules by phase.

    forward   Net_0              own 2, with submodules 7
    forward   Net_0 > Linear_0   own 5, with submodules 5
    forward   (outside of modules)

Backward work belongs to the module of the forward operation that it is tied to, as for kernels (`modules`).
Own bytes of all rows add up to all that was allocated in the capture.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.flame.modules import (
    MODULE,
    PHASES,
    Modules,
    has_modules,
    layers_of,
    modules,
    phases_of,
)
from tb_tpuprof.analysis.memory.events import MemoryEvents
from tb_tpuprof.analysis.memory.holders import Holders, allocations, holders
from tb_tpuprof.native import summed_up
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ModuleContents:
    """A row per phase and path of modules that allocated memory, or whose submodules did. `held`: what it
    allocated itself; `with_inner_bytes`: bytes at the moment allocated in it and its submodules, in that
    phase.
    """

    held: Holders
    with_inner_bytes: Int64s
    trace: Trace
    found: Modules

    def __len__(self) -> int:
        return len(self.held)

    def phase(self, row: int) -> str:
        """The phase of a row."""
        return PHASES[int(self.held.key[row]) // (len(self.found.parent) + 1)]

    def layers(self, row: int) -> tuple[str, ...]:
        """The modules of a row, outermost first; one text for allocations outside of modules."""
        path = int(self.held.key[row]) % (len(self.found.parent) + 1) - 1
        return tuple(name.removeprefix(MODULE) for name in layers_of(self.trace, self.found, path))


def module_contents(trace: Trace, events: MemoryEvents, memory: int, event: int) -> ModuleContents | None:
    """A memory's allocations by module and phase, right after an event; None if the trace has no modules."""
    if not has_modules(trace):
        return None
    layers = modules(trace)
    rows = allocations(events, memory)
    phase, path = phases_of(trace, layers, events.event[rows].astype(np.int64))
    n_keys = len(layers.parent) + 1
    own = holders(events, rows, phase * n_keys + path + 1, event)
    above = np.append(-1, np.where(layers.parent >= 0, layers.parent + 1, -1)).astype(np.int32)
    at_bytes, n_own = np.zeros((2, len(PHASES) * n_keys), np.int64)
    at_bytes[own.key], n_own[own.key] = own.at_bytes, 1
    with_inner, n_inside = (
        summed_up(above, values.reshape(len(PHASES), n_keys)).reshape(-1) for values in (at_bytes, n_own)
    )
    added = np.flatnonzero((n_inside > 0) & (n_own == 0))
    columns = {
        name: np.concatenate((getattr(own, name), np.zeros(len(added), np.int64)))
        for name in Holders.__dataclass_fields__
    }
    key = columns["key"] = np.concatenate((own.key, added))
    return ModuleContents(Holders(**columns), with_inner[key], trace, layers)
