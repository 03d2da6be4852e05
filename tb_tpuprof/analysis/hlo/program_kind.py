"""For which kind of device a program was compiled, by what only that kind's compiler writes into its HLO."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tb_tpuprof.trace.hlo import HloModule

# Beginnings of custom calls' targets, and keys of backend configurations: OpenXLA's compilers for GPUs, TPUs
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
_MOST_LOOKED_AT = 20


def program_kind(module: HloModule) -> str:
    """`GPU`, `TPU`, `CPU`, or empty where nothing in the program tells."""
    if any(":T(" in shape.text() for shape in module.shapes):  # only TPUs tile their layouts
        return "TPU"
    telling = module.has_opcode(
        ("custom-call", "fusion", "convolution", "dot", "all-reduce", "while", "broadcast")
    )
    for row in np.flatnonzero(telling).tolist():
        target = module.text("custom_call_target", row) if module.opcode(row) == "custom-call" else ""
        config = bytes(module.backend_config(row))
        for kind, beginnings in _TARGETS.items():
            if target.startswith(beginnings) or any(key in config for key in _CONFIGS[kind]):
                return kind
    return ""


def kind_of_programs(modules: Iterable[HloModule]) -> str:
    """The kind that the first programs which tell one were compiled for: programs of one run are for one kind
    of device.
    """
    for _, module in zip(range(_MOST_LOOKED_AT), modules, strict=False):
        if kind := program_kind(module):
            return kind
    return ""
