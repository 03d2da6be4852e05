"""How a kernel was launched, from the text that GPU tracers write: `regs:32 static_shared:0 grid:16,1,1
block:128,1,1 occ_pct:50`.
"""

from __future__ import annotations

from dataclasses import dataclass

_MAX = 2**32 - 1  # the drivers' numbers have 32 bits; larger ones are not launch parameters
_NAN = float("nan")


@dataclass(frozen=True)
class Launch:
    """Registers of a thread, bytes of shared memory of a block, sizes as `x,y,z`, occupancy 0–1. -1, empty
    and NaN: not told.

    `is_computed`: the occupancy is not the tracer's, but follows from the launch
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
        """Static and dynamic together, -1 if neither is told."""
        known = [size for size in (self.static_shared_bytes, self.dynamic_shared_bytes) if size >= 0]
        return sum(known) if known else -1

    @property
    def key(self) -> tuple[int, int, int, str, str]:
        """What tells launches apart; the occupancy follows from it."""
        return self.n_registers, self.static_shared_bytes, self.dynamic_shared_bytes, self.block, self.grid


def read_launch(text: str) -> Launch:
    """The launch that a text tells. Unknown words and numbers of more than 32 bits are passed over.

    AMD's tracer says `group_mem` for all shared memory and occupancy 0 for unknown; old ones of NVIDIA's say
    `shm`.
    """
    found: dict[str, str] = {}
    for word in text.split():
        key, colon, value = word.partition(":")
        if colon:
            found[key] = value
    occupancy = _percent(found.get("occ_pct", ""))
    static = next((found[key] for key in ("static_shared", "group_mem", "shm") if key in found), "")
    return Launch(
        _number(found.get("regs", "")),
        _number(static),
        _number(found.get("dynamic_shared", "")),
        _sizes(found.get("block", "")),
        _sizes(found.get("grid", "")),
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
