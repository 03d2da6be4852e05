"""Launch parameters of a kernel, parsed from the text that GPU tracers write: `regs:32 static_shared:0
grid:16,1,1 block:128,1,1 occ_pct:50`.
"""

from __future__ import annotations

from dataclasses import dataclass

_MAX = 2**32 - 1  # the drivers' numbers have 32 bits; larger ones are not launch parameters
_NAN = float("nan")


@dataclass(frozen=True)
class Launch:
    """Registers per thread, bytes of shared memory per block, sizes as `x,y,z`, occupancy 0–1. Missing values
    are -1, empty and NaN.

    `is_computed`: the occupancy is not the tracer's but computed from the launch
    (analysis/kernels/occupancy.py).
    """

    n_registers: int = -1
    static_shared_bytes: int = -1
    dynamic_shared_bytes: int = -1
    block: str = ""
    grid: str = ""
    occupancy: float = _NAN
    is_computed: bool = False

    @property
    def shared_bytes(self) -> int:
        """Static and dynamic shared memory, -1 if neither is known."""
        known_sizes = [size for size in (self.static_shared_bytes, self.dynamic_shared_bytes) if size >= 0]
        return sum(known_sizes) if known_sizes else -1

    @property
    def key(self) -> tuple[int, int, int, str, str]:
        """The parameters that identify a launch; the occupancy follows from them."""
        return self.n_registers, self.static_shared_bytes, self.dynamic_shared_bytes, self.block, self.grid


def read_launch(text: str) -> Launch:
    """Parse the text of a launch. Unknown words and numbers of more than 32 bits are ignored.

    AMD's tracer writes `group_mem` for all shared memory and occupancy 0 for unknown; old versions of
    NVIDIA's write `shm`.
    """
    values: dict[str, str] = {}
    for word in text.split():
        key, colon, value = word.partition(":")
        if colon:
            values[key] = value
    occupancy = _percent(values.get("occ_pct", ""))
    static = next((values[key] for key in ("static_shared", "group_mem", "shm") if key in values), "")
    return Launch(
        _number(values.get("regs", "")),
        _number(static),
        _number(values.get("dynamic_shared", "")),
        _sizes(values.get("block", "")),
        _sizes(values.get("grid", "")),
        occupancy,
    )


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= _MAX else -1


def _sizes(text: str) -> str:
    numbers = [_number(part) for part in text.split(",")]
    return ",".join(map(str, numbers)) if len(numbers) == 3 and min(numbers) >= 0 else ""


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return _NAN
    return value / 100 if 0 < value <= 100 else _NAN
