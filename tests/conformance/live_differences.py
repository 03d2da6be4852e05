"""Where synthetic runs differ from the peer, and why."""

from __future__ import annotations

_PEAKS = "the peer prints 0.0% whatever the trace says: its converter is not given the peaks"
_UNKNOWN = "there are no steps: what is not known is empty here, the peer prints 0"
_NO_DETAILS = (
    "a kernel whose launch the trace does not describe, as those of graphs, is a kernel all the "
    "same; the peer passes it over"
)
_GAPS = (
    "a step's annotation contains what the GPUs did for it and is the step, as planted (1 ms); the peer "
    "takes the kernels' span"
)
_TOUCHING = (
    "an operation that begins when its step does is its step's: the peer gives it to the step "
    "before, which ends there"
)
_HOSTS = (
    "hosts differ: all parts are means over hosts; the peer pairs one host's infeed with another's "
    "compute, the rest is its idle"
)
_CORES = (
    "computing is the mean over cores, as planted; the peer takes that of the core that waits longest, "
    "the rest is its idle"
)
_COPIES = (
    "copies to the device are a cause of their own, transfers, as planted; the peer counts them as input"
)
_PRODUCT = "the product's name, such as v5e; the peer prints the runtime's, v5 lite"
_GPUS = "each GPU is a core; the peer has one per host"
_ABOVE = "122% of the peak was counted: unknown, with a notice, in no sum; the peer shows or caps it"
# (run, tool, field), each a pattern: why the two differ.
DIFFERENCES: dict[tuple[str, str, str], str] = {
    ("tpu_sparse", "op_profile", "*: HBM"): _ABOVE,
    ("tpu_sparse", "*", "*: *_bw*"): _ABOVE,
    ("tpu_sparse", "*", "*intensity"): _ABOVE,
    ("tpu_sparse", "*", "*: bound_by"): _ABOVE,
    ("tpu_sparse", "roofline_model", "*: roofline_efficiency"): _ABOVE,
    ("tpu_sparse", "roofline_model", "*: optimal_flop_rate"): _ABOVE,
    ("tpu*", "overview_page", "device type"): _PRODUCT,
    ("corpus_xprof_tpu_inference_2_old__run", "roofline_model", "device_type"): _PRODUCT,
    ("tpu*", "overview_page", "flop_rate_utilization_*"): _PEAKS,
    ("tpu*", "overview_page", "memory_bw_utilization_*"): _PEAKS,
    ("tpu*", "overview_page", "verdict on the input"): "the peer's overview has no verdict on TPUs; ours is "
    "the input pipeline analyzer's",
    ("tpu*", "overview_page", "device_duty_cycle_percent"): (
        "the profiled time ends with the last step, as for idle time, so that the shares sum up; the peer's "
        "with the last operation"
    ),
    ("tpu_touching", "overview_page", "step*: tc*TimeMs"): _TOUCHING,
    ("tpu_touching", "input_pipeline_analyzer", "infeed_percent_*"): _TOUCHING,
    ("tpu_touching", "input_pipeline_analyzer", "verdict on the input"): _TOUCHING,
    ("tpu_touching", "roofline_model", "*: step *"): _TOUCHING,
    ("tpu_unlike", "overview_page", "step*: tc*TimeMs"): _CORES,
    ("tpu_no_steps", "overview_page", "step time, *"): _UNKNOWN,
    ("tpu_no_steps", "input_pipeline_analyzer", "step time, *"): _UNKNOWN,
    ("tpu_no_steps", "input_pipeline_analyzer", "infeed_percent_*"): _UNKNOWN,
    ("tpu_no_steps", "input_pipeline_analyzer", "verdict on the input"): "neither says anything: there are "
    "no steps",
    ("tpu_hosts", "overview_page", "step*"): _HOSTS,
    ("tpu_hosts", "input_pipeline_analyzer", "step time, *"): "the mean over hosts, as the page says; the "
    "peer's is the slowest host's",
    ("gpu*", "overview_page", "device type"): "the vendor writes its name NVIDIA",
    ("gpu*", "kernel_stats", "sm90_gemm_f32 train/MatMul: tensor cores"): "a matrix product for sm90: the "
    "peer's names stop at Ampere",
    ("gpu*", "kernel_stats", "kernels"): _NO_DETAILS,
    ("gpu*", "kernel_stats", "number of rows"): _NO_DETAILS,
    ("gpu*", "overview_page", "step time, *"): _GAPS,
    ("gpu*", "overview_page", "step*: otherTimeMs"): _GAPS,
    ("gpu*", "input_pipeline_analyzer", "step time, *"): _GAPS,
    ("gpu*", "overview_page", "verdict on the input"): _COPIES,
    ("gpu*", "input_pipeline_analyzer", "verdict on the input"): _COPIES,
    ("gpu*", "pod_viewer", "step time, *"): _GAPS,
    ("gpu*", "pod_viewer", "all others, *"): _GAPS,
    ("kernels*", "kernel_stats", "nvjet_*: tensor cores"): "cuBLAS's names on Hopper and Blackwell: the "
    "peer's list stops at Ampere",
    ("kernels_hosts", "kernel_stats", "number of rows"): "equal rows of hosts are merged; the peer lists "
    "them one below the other",
    ("memory_leak", "memory_profile", "*: active allocations"): "what earlier steps left counts too; the "
    "peer takes only the peak's step",
    ("memory_tpu", "memory_profile", "*: lifetime_peak_bytes"): "never below the peak in the capture, which "
    "has the stack in it",
    ("[!c]*", "kernel_stats", "*: occupancy"): "where the trace tells none it is computed from the launch; "
    "the peer prints 0",
    ("gpu*", "pod_viewer", "steps"): "steps that the capture's start or end may have cut are left out, as on "
    "the overview",
    ("gpu_two", "pod_viewer", "cores"): _GPUS,
    **{
        ("gpu_unlike", "pod_viewer", f"{part}*"): _GPUS
        for part in ("cores", "device compute, ", "collectives, ", "input, ", "output, ")
    },
    ("tpu_touching", "pod_viewer", "input, *"): _TOUCHING,
    ("tpu_touching", "pod_viewer", "all others, *"): _TOUCHING,
    ("gpu*", "framework_op_stats", "operations"): "the host ran no operation, so it idled in no span; the "
    "peer lists 0 µs of IDLE",
}
