"""Labels for times summed over devices: four cores that ran for 10 s each have 40 s in total."""

from __future__ import annotations

from tb_tpuprof.analysis.ops.hlo_record import HloOps
from tb_tpuprof.units import format_time

_WORDS = {"TPU": "core", "GPU": "GPU", "CPU": "device"}


def summed(time_ps: float, n_devices: int, kind: str) -> str:
    """A sum over devices as time per device: `summed over 4 cores: 19.5 s per core`; empty for a single
    device.
    """
    word = _WORDS.get(kind, "device")
    return (
        f"summed over {n_devices:,} {word}s: {format_time(time_ps / n_devices)} per {word}"
        if n_devices > 1
        else ""
    )


def time_of_ops(ops: HloOps, time_ps: float) -> str:
    """A time of operations as text; says so if it is a sum over devices."""
    per_device = summed(time_ps, ops.n_devices, ops.kind)
    return f"{format_time(time_ps)} ({per_device})" if per_device else format_time(time_ps)


def busy_note(ops: HloOps) -> str:
    """The base of the time of all operations: the devices it is summed over, and their span."""
    if ops.kind == "CPU":
        return (
            "from launch to end, on the host"
            if ops.n_devices == 1
            else f"from launch to end, on {ops.n_devices} CPU devices together"
        )
    per_device = summed(ops.busy_ps, ops.n_devices, ops.kind) or "on one device"
    span = format_time(ops.span_ps / ops.n_devices) if ops.n_devices else ""
    if not span:
        return per_device
    how = "several at once, in" if ops.busy_ps > ops.span_ps else "of"
    return f"{per_device}, {how} {span} from its first operation to its last"
