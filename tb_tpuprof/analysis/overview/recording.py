"""How a profile was recorded: tracer levels and settings, as the profiler states them in the trace.

XLA's profiler stores its ProfileOptions as the stat `profile_options` of a plane of the host:

    ProfileOptions   2 host_tracer_level   3 device_tracer_level   4 python_tracer_level   5 version
                     9 duration_ms   11 trace_options {1 host_traceme_filter_mask}
                     12 advanced_configuration* {1 key, 2 value {1 text, 2 boolean, 3 whole number}}

Levels count from version 1 on; before it, each tracer had a level of its own choice.
"""

from __future__ import annotations

from dataclasses import dataclass

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.proto_fields import number_field
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.trace.wire import read_fields

_STAT = "profile_options"
_HOST, _DEVICE, _PYTHON, _VERSION, _DURATION, _TRACE_OPTIONS, _SETTINGS = 2, 3, 4, 5, 9, 11, 12
_MAX_BYTES = 2**20
_MAX_SETTINGS, _MAX_TEXT = 64, 200
_INT64 = 2**63


@dataclass(frozen=True)
class Recording:
    """Tracer levels; the requested duration (0: until stopped); the mask of host events, None if all were
    recorded; settings of devices as (key, value), sorted by key.
    """

    host_level: int
    device_level: int
    python_level: int
    duration_ms: int
    filter_mask: int | None
    settings: tuple[tuple[str, str], ...]


@once
def recording(trace: Trace) -> Recording | None:
    """How the trace was recorded; None if it does not say so."""
    for _, position, size in trace.plane_stats.spans(_STAT):
        if size <= _MAX_BYTES:
            found = _decoded(trace.source.read(position, size))
            if found is not None:
                return found
    return None


def _decoded(data: bytes) -> Recording | None:
    if not number_field(data, _VERSION):
        return None
    messages = [
        (number, value) for number, wire, value in read_fields(data) if wire == 2 and isinstance(value, bytes)
    ]
    masks = [number_field(value, 1) for number, value in messages if number == _TRACE_OPTIONS]
    settings = [_setting(value) for number, value in messages if number == _SETTINGS]
    return Recording(
        number_field(data, _HOST),
        number_field(data, _DEVICE),
        number_field(data, _PYTHON),
        number_field(data, _DURATION),
        masks[-1] if masks else None,
        tuple(sorted(settings[:_MAX_SETTINGS])),
    )


def _setting(entry: bytes) -> tuple[str, str]:
    key, value = "", ""
    for number, _, content in read_fields(entry):
        if isinstance(content, bytes) and number == 1:
            key = _text(content)
        elif isinstance(content, bytes) and number == 2:
            value = _value(content)
    return key, value


def _value(message: bytes) -> str:
    """A setting's value as it would be typed."""
    text = ""
    for number, wire, content in read_fields(message):
        if number == 1 and isinstance(content, bytes):
            text = _text(content)
        elif number == 2 and wire == 0:
            text = "true" if content else "false"
        elif number == 3 and isinstance(content, int):
            text = str(content - 2 * _INT64 if content >= _INT64 else content)
    return text


def _text(content: bytes) -> str:
    text = content[: 4 * _MAX_TEXT + 1].decode("utf-8", "replace")  # more than is shown, where it is cut
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
