"""The kind of device that a program was compiled for, from what only that kind's compiler writes into its
HLO.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tb_tpuprof.trace.hlo import HloModule

# Prefixes of custom call targets, and keys of backend configurations: OpenXLA's compilers for GPUs, TPUs
# and CPUs.
_TARGETS = {
    "GPU": (
        "__cudnn$",
        "__cublas$",
        "__cusolver$",
        "__cufft",
        "__triton",
        "triton_kernel_call",
        "__nccl",
        "__gpu$",
        "__cub$",
        "cu_",
        "hip",
    ),
    "TPU": ("tpu_custom_call", "Sharding_tpu"),
    "CPU": ("__onednn$", "__cpu$", "__ynn"),
}
_CONFIGS = {
    "GPU": (
        b'"operation_queue_id"',
        b'"fusion_backend_config"',
        b'"gemm_backend_config"',
        b'"cudnn_',
        b'"triton_',
    ),
    "TPU": (b'"scoped_memory_configs"', b'"window_config"', b'"barrier_config"'),
    "CPU": (b'"outer_dimension_partitions"', b'"__ynn_fusion"', b'"onednn_'),
}
_MOST_INSPECTED = 20


def program_kind(module: HloModule) -> str:
    """`GPU`, `TPU`, `CPU`, or empty if the program does not reveal it."""
    if any(":T(" in shape.text() for shape in module.shapes):  # only TPUs tile their layouts
        return "TPU"
    is_candidate = module.has_opcode(
        ("custom-call", "fusion", "convolution", "dot", "all-reduce", "while", "broadcast")
    )
    for row in np.flatnonzero(is_candidate).tolist():
        target = module.text("custom_call_target", row) if module.opcode(row) == "custom-call" else ""
        config = bytes(module.backend_config(row))
        for kind, prefixes in _TARGETS.items():
            if target.startswith(prefixes) or any(key in config for key in _CONFIGS[kind]):
                return kind
    return ""


def kind_of_programs(modules: Iterable[HloModule]) -> str:
    """The kind of the first programs that reveal one; all programs of a run are for one kind of device.
    Inspects at most 20.
    """
    for _, module in zip(range(_MOST_INSPECTED), modules, strict=False):
        if kind := program_kind(module):
            return kind
    return ""
