"""Planes and lines by role: which contain host threads, which devices, and which lines a profiler back end
derived from other lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.trace.trace import Trace

HOST_THREADS = "/host:CPU"
# MTIA, XPU and HPU: accelerators of Meta and Intel. PyTorch writes their streams like those of GPUs.
_GPU = re.compile(r"/device:(GPU|MTIA|XPU|HPU):\d+")
_TENSOR_CORE = re.compile(r"/device:TPU:\d+$")
_SPARSE_CORE = re.compile(r"/device:TPU:\d+ SparseCore(?: [a-zA-Z]+)? \d+$")

# Lines that profiler back ends derive from other lines have ids from here on (as unsigned 32-bit numbers).
FIRST_DERIVED_LINE = 0xDEADBEEF
N_DERIVED_LINES = 500
DERIVED_STEPS = FIRST_DERIVED_LINE
DERIVED_OPS = FIRST_DERIVED_LINE + 3

STEP_LINES = ("Steps", "Sparse Core Steps")
MODULE_LINES = ("XLA Modules", "Sparse Core Modules")
OP_LINE = "XLA Ops"
ASYNC_OP_LINE = "Async XLA Ops"  # from an operation's start to its end, while others run


@dataclass(frozen=True)
class Planes:
    """Rows of `planes` by role, in the file's order, and which rows of `lines` are derived."""

    hosts: tuple[int, ...]
    gpus: tuple[int, ...]
    tensor_cores: tuple[int, ...]
    sparse_cores: tuple[int, ...]
    is_derived_line: npt.NDArray[np.bool_]

    @property
    def has_device(self) -> bool:
        """Whether the trace has the plane of any accelerator, even an empty one."""
        return bool(self.gpus or self.tensor_cores or self.sparse_cores)

    @property
    def hardware(self) -> str:
        """`TPU`, `GPU` or `CPU`: TPU planes win over GPU planes, which win over none."""
        if self.tensor_cores or self.sparse_cores:
            return "TPU"
        return "GPU" if self.gpus else "CPU"


@once
def planes(trace: Trace) -> Planes:
    """Classify planes by name (the names that the tracers of TensorFlow, JAX and libtpu write)."""
    names = trace.plane_names
    ids = trace.lines["id"] & 0xFFFFFFFF
    derived = (ids >= FIRST_DERIVED_LINE) & (ids < FIRST_DERIVED_LINE + N_DERIVED_LINES)
    return Planes(
        hosts=tuple(i for i, name in enumerate(names) if name == HOST_THREADS),
        gpus=tuple(i for i, name in enumerate(names) if _GPU.fullmatch(name)),
        tensor_cores=tuple(i for i, name in enumerate(names) if _TENSOR_CORE.match(name)),
        sparse_cores=tuple(i for i, name in enumerate(names) if _SPARSE_CORE.match(name)),
        is_derived_line=derived,
    )


def line_events(trace: Trace, line: int) -> slice:
    """The events of one line."""
    return slice(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1]))


def lines_named(trace: Trace, plane: int, names: tuple[str, ...]) -> list[int]:
    """Lines of a plane that have one of the names."""
    return [line for line in trace.lines_of([plane]).tolist() if trace.line_names[line] in names]


def step_line_of_gpu(trace: Trace, plane: int) -> int:
    """The steps line that a back end derived on a GPU's plane, -1 if there is none."""
    ids = trace.lines["id"] & 0xFFFFFFFF
    lines = [line for line in trace.lines_of([plane]).tolist() if ids[line] == DERIVED_STEPS]
    return lines[0] if lines else -1
