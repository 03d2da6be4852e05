"""The profiler service's messages, wire-compatible with TensorFlow, JAX and PyTorch/XLA, made from tables of
field numbers.

Texts in replies are declared as bytes: a server may send invalid UTF-8, with which a string field would fail
the whole reply.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tb_tpuprof.ingest.xspace.descriptors import Field, message_classes

PACKAGE = "tb_tpuprof.profiler"
PROFILE = "/tensorflow.ProfilerService/Profile"
MONITOR = "/tensorflow.ProfilerService/Monitor"
START_CONTINUOUS = "/tensorflow.ProfilerService/StartContinuousProfiling"
STOP_CONTINUOUS = "/tensorflow.ProfilerService/StopContinuousProfiling"
SNAPSHOT = "/tensorflow.ProfilerService/GetSnapshot"
NEW_SESSION = "/tensorflow.ProfileAnalysis/NewSession"

MESSAGES: dict[str, tuple[Field, ...]] = {
    "ProfileOptions": (
        (1, "include_dataset_ops", "bool", False),
        (2, "host_tracer_level", "uint32", False),
        (3, "device_tracer_level", "uint32", False),
        (4, "python_tracer_level", "uint32", False),
        (5, "version", "uint32", False),
        (6, "device_type", "int32", False),
        (7, "enable_hlo_proto", "bool", False),
        (8, "start_timestamp_ns", "uint64", False),
        (9, "duration_ms", "uint64", False),
        (10, "repository_path", "string", False),
        (11, "trace_options", "TraceOptions", False),
        # On the wire, a map is a repeated message of its keys and values.
        (12, "advanced_configuration", "Setting", True),
        (13, "raise_error_on_start_failure", "bool", False),
        (14, "session_id", "string", False),
        (15, "override_hostname", "string", False),
    ),
    "TraceOptions": ((1, "host_traceme_filter_mask", "uint64", False),),
    "Setting": ((1, "key", "string", False), (2, "value", "SettingValue", False)),
    "SettingValue": (
        (1, "string_value", "string", False),
        (2, "bool_value", "bool", False),
        (3, "int64_value", "int64", False),
    ),
    "ProfileRequest": (
        (1, "duration_ms", "uint64", False),
        (2, "max_events", "uint64", False),
        (3, "tools", "string", True),
        (4, "opts", "ProfileOptions", False),
        (5, "repository_root", "string", False),
        (6, "session_id", "string", False),
        (7, "host_name", "string", False),
        (9, "emit_xspace", "bool", False),
    ),
    "ToolData": ((1, "name", "bytes", False), (2, "data", "bytes", False)),
    # XSpace, field 8, stays bytes here: a profile is written to its file unchanged.
    "ProfileResponse": (
        (6, "tool_data", "ToolData", True),
        (7, "empty_trace", "bool", False),
        (8, "xspace", "bytes", False),
    ),
    "SnapshotRequest": ((1, "snapshot_session_id", "string", False),),
    "StopRequest": (),
    "NewSessionRequest": (
        (1, "request", "ProfileRequest", False),
        (2, "repository_root", "string", False),
        (3, "hosts", "string", True),
        (4, "session_id", "string", False),
    ),
    "NewSessionResponse": ((1, "error_message", "bytes", False), (2, "empty_trace", "bool", False)),
    "MonitorRequest": (
        (1, "duration_ms", "uint64", False),
        (2, "monitoring_level", "int32", False),
        (3, "timestamp", "bool", False),
    ),
    "MonitorResult": (
        (1, "response_type", "int32", False),
        (2, "device_idle_time_percent", "double", False),
        (3, "matrix_unit_utilization_percent", "double", False),
        (4, "step_time_ms_avg", "double", False),
        (5, "step_time_ms_min", "double", False),
        (6, "step_time_ms_max", "double", False),
        (7, "infeed_percent_avg", "double", False),
        (8, "infeed_percent_min", "double", False),
        (9, "infeed_percent_max", "double", False),
    ),
    "MonitorResponse": ((1, "data", "bytes", False), (10, "monitor_result", "MonitorResult", False)),
}


# Which of a setting's values is sent shows even if it is false, 0 or empty.
_ONEOFS = {"SettingValue": ("value", (1, 2, 3))}


@cache
def _classes() -> dict[str, Any]:
    return message_classes(PACKAGE, MESSAGES, _ONEOFS)


def message_class(name: str) -> Any:
    """The class of one of the messages above."""
    return _classes()[name]
