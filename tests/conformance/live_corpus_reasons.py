"""Why compiled operations of real runs differ from the peer's: the listed differences of HLO stats, roofline
and op profile.
"""

from __future__ import annotations

from collections.abc import Iterable

Key = tuple[str, str, str]
_ALL = "corpus_*"
_TPU, _GTX = "corpus_xprof_tpu_*", "corpus_reactant__2025_02*"
_MI300, _JAX08 = "corpus_tracelens_mi300_jax__*", "corpus_tracelens_mi300_jax__jax08_*"
_ATTENTION, _GEMM, _CONV = (
    f"corpus_tracelens_mi300_jax__{name}" for name in ("jax08_attention", "jax08_gemm", "jax_conv_minimal_08")
)
_JAX_CPU, _TF_GPU = "corpus_own_jax_cpu__mlp", "corpus_xprof_gpu_multi_worker__*"

_ELEMENTS = (
    "an element is a FLOP, as in XLA's own cost analysis; the peer's GPU model gives 3 for an "
    "addition, up to hundreds for exp"
)
_CUBLAS = "cuBLAS calls are work; the peer says 0 FLOPs and 0 bytes"
_CUDNN = "a cuDNN call's bytes are HBM's, its workspace among them; the peer has most of them in no memory"
_SUMS = "sums over operations whose work differs, see there"
_ASYNC = (
    "a copy's bytes count once, where it ends, and over all of its time; the peer counts them for both "
    "halves, each over its own time"
)
_HBM3 = (
    "the data sheet's peak of MI300X; the peer believes ROCm's tracer, which counts half of the "
    "transfers of HBM3"
)
_CPU = "XLA:CPU's operations are listed; the peer's page is empty"
_NO_OPS = "no compiled operation, so no page, and it says why; the peer shows steps without operations"
_NO_STEPS = "there are no steps; the peer's average of none is a row of zeros"
_AUTOTUNED = "no tracer writes it: the peer says No of each operation, so there is no such column"
_PARENT = "the peer leaves it empty for each operation, so there is no such column"
_STALL = "the peer says 0 of each operation here; the column is in HLO stats"
_WARNINGS = (
    "the peer warns that there are no steps; here the table of steps shows none, and the overview says why"
)
_FRAMES = (
    "a generator's frames (`batches`) are waiting for data; the peer counts any frame of the Python "
    "tracer as computing"
)
_CPU_RATES = "says that a CPU states no peaks; the peer says nothing, and shows nothing"
_VENDOR = "device names as the vendor writes them"
_SETTINGS = "how the peer draws its page; the roofs that there are stand in the table of roofs"
_DEVICES = "per device that ran something; the peer divides by idle devices too"
_DVFS = "a clock's scale is in the rates at rated clock of HLO stats; the tree has measured times"
_OUTER = "nodes above categories count what is below, too; the peer counts for categories and below"
_NO_IDLE = "an IDLE node of no time is left out"
_SAME_NAME = "operations of several programs that only share a name are no duplicates"
_ROOT = (
    "the root's utilization counts the same time as its bandwidth; the peer leaves idle time out of one "
    "and not of the other"
)
_INSIDE = "the cost model tells the FLOPs of each instruction inside of a fusion; the peer gives them none"
_SOURCE = "the source line, where there is no stack; the peer's stack is empty"

_INTENSITIES = ("operational_intensity", "hbm_operational_intensity", "bottleneck_operational_intensity")
_FLOP_RATES = ("model_flop_rate", "measured_flop_rate", "compute_efficiency")
_BANDWIDTHS = ("measured_memory_bw", "hbm_bw", "max_mem_bw_utilization")
_BOUNDS = ("roofline_efficiency", "optimal_flop_rate", "bound_by")
_TREE_FLOPS = ("rawFlops", "bf16Flops", "flops", "uncappedFlops")
_TREE_BYTES = ("HBM bytes", "HBM utilization")
_OUTER_KINDS = ("all all", "program *", "scope *")


def _each(run: str, tool: str, rows: Iterable[str], columns: Iterable[str], why: str) -> dict[Key, str]:
    """One difference for each pair of a pattern of rows and a column."""
    return {(run, tool, f"{row}: {column}"): why for row in rows for column in columns}


def _of_ops(run: str, op: str, columns: tuple[str, ...], why: str) -> dict[Key, str]:
    """In HLO stats (what it has of these columns) and in the roofline."""
    in_stats = [
        c
        for c in columns
        if c in ("operational_intensity", "model_flop_rate", "measured_memory_bw", "hbm_bw", "bound_by")
    ]
    in_stats += ["normalized_flop_rate"] if "model_flop_rate" in columns else []
    found = _each(run, "hlo_stats", (f"{op} (*)",), in_stats, why)
    return found | _each(run, "roofline_model", (f"*: {op} (*)",), columns, why)


_WORK: dict[Key, str] = {
    **_of_ops(_JAX08, "custom-call.1", (*_INTENSITIES, *_FLOP_RATES, *_BANDWIDTHS, *_BOUNDS), _CUBLAS),
    **_of_ops(_CONV, "cudnn-conv.1", (*_INTENSITIES, *_BANDWIDTHS, *_BOUNDS), _CUDNN),
    **_of_ops(_ATTENTION, "*", (*_INTENSITIES, *_FLOP_RATES, "optimal_flop_rate"), _ELEMENTS),
    **_of_ops(_GTX, "*", (*_INTENSITIES, *_FLOP_RATES, "optimal_flop_rate"), _ELEMENTS),
    **_each(_MI300, "roofline_model", ("*: step Total",), (*_INTENSITIES, *_BANDWIDTHS, *_BOUNDS), _SUMS),
    **_each(_JAX08, "roofline_model", ("*: step Total",), _FLOP_RATES, _SUMS),
    **_each(
        _GTX, "roofline_model", ("*: step Total",), (*_INTENSITIES, *_FLOP_RATES, "optimal_flop_rate"), _SUMS
    ),
    **_each(_GEMM, "op_profile", ("*: op */custom-call.1 (*)",), _TREE_FLOPS, _CUBLAS),
    **_each(_JAX08, "op_profile", ("*: op */custom-call.1 (*)",), _TREE_BYTES, _CUBLAS),
    **_each(_CONV, "op_profile", ("*: op */cudnn-conv.1 (*)",), _TREE_BYTES, _CUDNN),
    **_each(
        _MI300,
        "op_profile",
        (*(f"*: {kind}" for kind in _OUTER_KINDS), "*: category */custom*"),
        _TREE_BYTES,
        _SUMS,
    ),
    **_each(
        _GEMM,
        "op_profile",
        (*(f"*: {kind}" for kind in _OUTER_KINDS), "*: category */custom-call"),
        _TREE_FLOPS,
        _SUMS,
    ),
    **_each(_ATTENTION, "op_profile", ("*",), _TREE_FLOPS, _ELEMENTS),
    **_each(_GTX, "op_profile", ("*",), _TREE_FLOPS, _ELEMENTS),
}
DIFFERENCES: dict[Key, str] = {
    **_WORK,
    **_each(_TPU, "hlo_stats", ("copy-* (*)",), ("measured_memory_bw", "hbm_bw", "bound_by"), _ASYNC),
    **_each(
        _TPU,
        "roofline_model",
        ("*: copy-* (*)",),
        ("measured_memory_bw", "hbm_bw", "max_mem_bw_utilization", "roofline_efficiency", "bound_by"),
        _ASYNC,
    ),
    **_each(
        _TPU, "roofline_model", ("*: step Total",), ("measured_memory_bw", "operational_intensity"), _ASYNC
    ),
    **_each(
        _TPU, "op_profile", ("*: category *copy-*", "*: op *copy-*"), ("HBM bytes", "HBM utilization"), _ASYNC
    ),
    **_each(
        _ALL, "op_profile", (f"*: {kind}" for kind in _OUTER_KINDS), ("occurrences", "avgTimePs"), _OUTER
    ),
    (_ALL, "hlo_stats", "column autotuned, always 'No'"): _AUTOTUNED,
    (_ALL, "hlo_stats", "column parent_op_name, always 'empty'"): _PARENT,
    (_JAX_CPU, "pod_viewer", "input, *"): _FRAMES,
    (_JAX_CPU, "hlo_stats", "operations"): _CPU,
    (_JAX_CPU, "roofline_model", "*: operations"): _CPU,
    (_JAX_CPU, "roofline_model", "*: steps"): _CPU,
    (_JAX_CPU, "roofline_model", "device_type"): _CPU,
    (_JAX_CPU, "roofline_model", "warnings"): _CPU_RATES,
    (_JAX_CPU, "op_profile", "*: nodes"): _CPU,
    (_TF_GPU, "roofline_model", "peaks that are known"): _NO_OPS,
    (_TF_GPU, "roofline_model", "*: steps"): _NO_OPS,
    (_TPU, "roofline_model", "*: steps"): _NO_STEPS,
    (_TPU, "roofline_model", "column dma_stall_percent, always '0.0'"): _STALL,
    (_TPU, "roofline_model", "settings *"): _SETTINGS,
    (_JAX_CPU, "roofline_model", "settings *"): _SETTINGS,
    (_GTX, "roofline_model", "warnings"): _WARNINGS,
    (_MI300, "roofline_model", "warnings"): _WARNINGS,
    (_TPU, "roofline_model", "warnings"): _WARNINGS,
    (_GTX, "roofline_model", "device_type"): _VENDOR,
    (_MI300, "roofline_model", "device_type"): _VENDOR,
    (_JAX08, "roofline_model", "*: total_time_per_core"): _DEVICES,
    (_ALL, "op_profile", "*: aggDvfsTimeScaleMultiplier"): _DVFS,
    (_ALL, "op_profile", "*: normalizedTimePs"): _DVFS,
    ("corpus_own_*", "op_profile", "*: deviceType"): "a CPU is called CPU, by the peer CPU_ONLY",
    ("corpus_reactant__2025_05*", "op_profile", "*: deviceType"): "a CPU is called CPU, by the peer CPU_ONLY",
    (_GTX, "op_profile", "*, with idle: nodes"): _NO_IDLE,
    (_GTX, "op_profile", "*, with idle: all all: numChildren"): _NO_IDLE,
    (_GTX, "op_profile", "*: stack"): _SOURCE,
    (_MI300, "op_profile", "category, *: groups of duplicates of several programs"): _SAME_NAME,
    (_TPU, "op_profile", "*, with idle: all all: flops"): _ROOT,
    (_TPU, "op_profile", "*, with idle: all all: uncappedFlops"): _ROOT,
    (_TPU, "op_profile", "*/add.*: rawFlops"): _INSIDE,
    (_MI300, "roofline_model", "peak_hbm_bw"): _HBM3,
    (_MI300, "roofline_model", "hbm_ridge_point"): _HBM3,
    **_each(
        _MI300,
        "roofline_model",
        ("*",),
        ("max_mem_bw_utilization", "roofline_efficiency", "optimal_flop_rate"),
        _HBM3,
    ),
    (_MI300, "op_profile", "*: HBM utilization"): _HBM3,
}
