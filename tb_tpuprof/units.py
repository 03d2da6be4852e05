"""Units, and how numbers are formatted for people: three significant digits, scaled, always with the unit."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

PS_PER_NS = 1_000
PS_PER_US = 1_000_000
PS_PER_MS = 1_000_000_000
PS_PER_S = 1_000_000_000_000

# As on the pages: minutes are used from 2 min on, hours from 2 h on. (Threshold, factor, unit).
_LONG_TIMES = ((7200 * PS_PER_S, 3600 * PS_PER_S, "h"), (120 * PS_PER_S, 60 * PS_PER_S, "min"))
_TIMES = ((PS_PER_S, "s"), (PS_PER_MS, "ms"), (PS_PER_US, "µs"), (PS_PER_NS, "ns"), (1, "ps"))
_BINARY = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_DECIMAL = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""))


def three_digits(value: float) -> str:
    """A number with three significant digits and no exponent: 1234.5 → 1,235; 12.345 → 12.3; 2 → 2.00;
    0.012345 → 0.0123. A half is rounded away from zero, as JavaScript does on the pages.
    """
    if value == 0:
        return "0"
    rounded = _rounded(value, _decimals(value))  # 9.996 becomes 10, which has one decimal less
    return f"{rounded:,.{_decimals(float(rounded))}f}"


def _rounded(value: float, decimals: int) -> Decimal:
    if not math.isfinite(value):
        return Decimal(value)
    return Decimal(value).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)


def _decimals(value: float) -> int:
    return max(0, 2 - math.floor(math.log10(abs(value))))


def format_time(value_ps: float) -> str:
    """Picoseconds as a scaled time: 12_400_000_000 → 12.4 ms; minutes from two minutes on, hours from two
    hours on; nothing is 0 s.
    """
    if value_ps == 0:
        return "0 s"
    for threshold, factor, unit in _LONG_TIMES:
        if abs(value_ps) >= threshold * 0.9995:
            return f"{three_digits(value_ps / factor)} {unit}"
    return _scaled(value_ps, _TIMES, " ")


def format_bytes(value: float) -> str:
    """Bytes with a binary prefix: 3_328_599_654 → 3.1 GiB."""
    return _scaled(value, _BINARY, " ")


def format_fraction(value: float) -> str:
    """A fraction 0–1 as percent: 0.62 → 62%; tiny ones as < 0.01%."""
    return "< 0.01%" if 0 < value < 1e-4 else f"{three_digits(value * 100)}%"


def counted(n: int, noun: str, plural: str = "") -> str:
    """`1 core`, `1,024 cores`. `plural`: of the noun, if it is not the noun and an s."""
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"


def all_of(n: int) -> str:
    """The subject of a sentence about all of `n` things, at least 2: "Both" or "All 3"."""
    return "Both" if n == 2 else f"All {n:,}"


def format_value(value: float | int | bool | None, unit: str) -> str:
    """A number of any payload unit as text; an em dash for unknown values."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if unit == "ps":
        return format_time(value)
    if unit == "bytes":
        return format_bytes(value)
    if unit == "fraction":
        return format_fraction(value)
    if unit in ("flops_per_s", "bytes_per_s", "flops_per_byte"):
        word = {"flops_per_s": "FLOP/s", "bytes_per_s": "B/s", "flops_per_byte": "FLOP/B"}[unit]
        return (
            _scaled(value, _DECIMAL, " ") + word
            if unit != "flops_per_byte"
            else f"{three_digits(value)} {word}"
        )
    return f"{int(value):,}" if value == int(value) else three_digits(value)


def _scaled(value: float, steps: tuple[tuple[float, str], ...], separator: str) -> str:
    factor, unit = next((step for step in steps if abs(value) >= step[0] * 0.9995), steps[-1])
    scaled = value / factor
    is_whole = unit in ("ps", "B") and scaled == int(scaled)
    return f"{scaled:,.0f}{separator}{unit}" if is_whole else f"{three_digits(scaled)}{separator}{unit}"
