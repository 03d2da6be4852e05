"""Why numbers are unknown, where several pages have the same reason."""

from __future__ import annotations

NO_STEPS = "no steps were found"
NO_DEVICE = "the trace contains no device that ran an operation"
NO_OCCURRENCE = "the trace does not state how often it ran"
NOT_TRACED = "no event in the trace names this instruction"
_MORE = "or more were counted than the device's peak allows in this time"
NO_FLOPS = f"neither the trace, the program's HLO nor the sizes of its inputs state the FLOPs, {_MORE}"
NO_BYTES = f"neither the trace, the program's HLO nor the sizes of its inputs state the bytes moved, {_MORE}"
NO_WORK = (
    f"neither the trace, the program's HLO nor the sizes of its inputs state both FLOPs and bytes, {_MORE}"
)
NO_INTENSITY = f"the FLOPs or the bytes are not stated, no bytes are moved, {_MORE}"
NO_PEAK = "the device's peak is unknown"
NO_FLOPS_OR_PEAK = f"the FLOPs are not stated, the device's peak is unknown, {_MORE}"
NO_BYTES_OR_PEAK = f"the bytes are not stated, the device's peak is unknown, {_MORE}"
NO_WORK_OR_PEAK = f"the FLOPs and bytes are not stated, the device's peaks are unknown, {_MORE}"
NO_LIMIT = "the operation's work or the device's peaks are unknown"
NO_FRAMEWORK_OP = "the compiler recorded no framework operation for it"
NO_SOURCE = "the compiler recorded no source line for it"
NO_LAUNCH = "the tracer recorded no such launch detail for this kernel"
