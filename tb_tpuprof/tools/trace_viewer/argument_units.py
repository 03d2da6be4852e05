"""Names and values of an event's arguments → the values as people read them: scaled, with their unit."""

from __future__ import annotations

import math
import re

import numpy as np

from tb_tpuprof.analysis.hlo.memory_accesses import Access, accesses_of
from tb_tpuprof.analysis.kernels.copies import size_in
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import (
    PS_PER_MS,
    PS_PER_NS,
    PS_PER_US,
    format_bytes,
    format_time,
    three_digits,
)

BREAKDOWN = "memory_access_breakdown"
_PS_PER = {"ps": 1, "ns": PS_PER_NS, "us": PS_PER_US, "ms": PS_PER_MS}
_TIME = re.compile(r"(?:_|\b)(ps|ns|us|ms)\)?$")
_BYTES = re.compile(r"(?:^|[_ ])bytes?(?:$|[_ ])", re.IGNORECASE)
_FLOPS = re.compile(r"(?:^|_)flops$")
_MORE_BYTES = frozenset(("Total Allocated", "Total Reserved", "num_bytes", "shared memory"))
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def shown(name: str, value: str) -> str:
    """The value scaled, with the unit that the argument's name states; "" if that is no other text.

    `flops` are floating-point operations, `…bytes…` bytes, `…_ps`, `_ns`, `_us`, `_ms` and `_s` times; of
    `memcpy_details` it is the size of the copy.
    """
    if name == "memcpy_details":
        size = size_in(value)
        return format_bytes(size) if size >= 0 else ""
    number = _number(value)
    if number is None:
        return ""
    if _FLOPS.search(name):
        return _flops(number)
    if _BYTES.search(name) or name in _MORE_BYTES:
        return format_bytes(number) if abs(number) >= 1024 else ""
    unit = _TIME.search(name)
    return format_time(number * _PS_PER[unit.group(1)]) if unit and number else ""


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _flops(number: float) -> str:
    factor, prefix = next((step for step in _PREFIXES if abs(number) >= step[0] * 0.9995), (1, ""))
    scaled = number / factor
    text = f"{scaled:,.0f}" if factor == 1 and scaled == int(scaled) else three_digits(scaled)
    return f"{text} {prefix}FLOP"


def breakdown_of(trace: Trace, metadata: int) -> str:
    """The bytes that an operation reads and writes in each memory: "HBM: 3.1 MiB read, 1 MiB written"; "" if
    its metadata has no breakdown.
    """
    owner, position, size = trace.metadata_stats.places(BREAKDOWN)
    places = np.flatnonzero(owner == metadata)
    if not len(places):
        return ""
    start, length = int(position[places[0]]), int(size[places[0]])
    by_memory: dict[str, list[Access]] = {}
    for access in accesses_of(trace, start, length):
        by_memory.setdefault(access.memory, []).append(access)
    return "; ".join(
        f"{memory}: " + ", ".join(f"{format_bytes(access.n_bytes)} {access.direction}" for access in accesses)
        for memory, accesses in by_memory.items()
    )
