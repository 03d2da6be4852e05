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
    MAX_LAYERS,
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
    # Of keys in a phase; 0: of no module.
    above = np.concatenate(([-1], layers.parent + 1)).astype(np.int64)
    above[above == 0] = -1
    at_bytes, is_shown = np.zeros((len(PHASES), n_keys), np.int64), np.zeros((len(PHASES), n_keys), np.bool_)
    at_bytes.ravel()[own.key], is_shown.ravel()[own.key] = own.at_bytes, True
    for keys in reversed(_by_depth(above)):
        for one in range(len(PHASES)):
            np.add.at(at_bytes[one], above[keys], at_bytes[one, keys])
            is_shown[one, above[keys[is_shown[one, keys]]]] = True
    added = np.setdiff1d(np.flatnonzero(is_shown.ravel()), own.key)
    nothing = np.zeros(len(added), np.int64)
    key = np.concatenate((own.key, added))
    rest = (
        own.allocated_bytes,
        own.n_allocated,
        own.at_bytes,
        own.n_at,
        own.kept_bytes,
        own.n_kept,
        own.most_bytes,
    )
    held = Holders(key, *(np.concatenate((column, nothing)) for column in rest))
    return ModuleContents(held, at_bytes.ravel()[key], trace, layers)


def _by_depth(above: Int64s) -> list[npt.NDArray[np.intp]]:
    """The keys that have one above them, by how deep they are, the outermost first; as deep as paths go."""
    levels: list[npt.NDArray[np.intp]] = []
    keys = np.flatnonzero(above >= 0)
    is_outer = above < 0
    while len(keys) and len(levels) < MAX_LAYERS:
        is_next = is_outer[above[keys]]
        levels.append(keys[is_next])
        is_outer[keys[is_next]] = True
        keys = keys[~is_next]
    return levels
