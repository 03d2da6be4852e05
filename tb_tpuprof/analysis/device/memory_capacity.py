"""Main memory capacity of a device and names of its memory spaces: from the trace, else from data sheets."""

from __future__ import annotations

import re

from tb_tpuprof.analysis.device.hardware import Hardware

_GIB = 2**30
# GiB per device, as a trace shows it (a core of v2, v3 and 7x, else a chip). Source:
# cloud.google.com/tpu/docs, "System architecture".
_TPU_HBM = (
    (r"v?7x?\b", 96),
    (r"v6", 32),
    (r"v5 ?(e|lite)", 16),
    (r"v5", 95),
    (r"v4 ?(i|lite)", 8),
    (r"v4", 32),
    (r"v3", 16),
    (r"v2", 8),
)
# XLA's numbers of memory spaces ("color" in a buffer assignment, S(n) in a layout).
_SPACES = {
    "TPU": {0: "HBM", 1: "VMEM", 2: "Sync flags", 3: "SMEM", 5: "Host memory"},
    "GPU": {0: "Device memory", 1: "Collective memory", 2: "Temp buffers", 5: "Host memory"},
    "CPU": {0: "Main memory", 5: "Host memory"},
    "": {0: "Device memory", 5: "Host memory"},
}


def capacity_bytes(machine: Hardware, color: int) -> int:
    """Size of a memory space of one device in bytes, 0 if unknown."""
    if color:
        return 0
    if machine.memory_bytes or machine.kind != "TPU":
        return machine.memory_bytes
    return next(
        (
            gib * _GIB
            for pattern, gib in _TPU_HBM
            if re.search(rf"TPU ?{pattern}", machine.device, re.IGNORECASE)
        ),
        0,
    )


def space_name(kind: str, color: int) -> str:
    """Name of a memory space of a TPU, a GPU, a CPU, or (empty `kind`) an unknown device."""
    return _SPACES.get(kind, {}).get(color, f"Memory space {color}")
