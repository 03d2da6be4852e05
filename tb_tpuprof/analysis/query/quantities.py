"""Numbers with units as people write them (`1ms`, `16MiB`, `2GFLOP`, `34..40`) → bounds in base units."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

TIMES = {
    "ps": 1,
    "ns": 10**3,
    "us": 10**6,
    "µs": 10**6,
    "μs": 10**6,
    "ms": 10**9,
    "s": 10**12,
    "min": 6 * 10**13,
}
_DECIMAL = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {f"{prefix}i": 2 ** (10 * (i + 1)) for i, prefix in enumerate("KMGTP")}
# Amounts: of bytes and of operations alike, as traces record both without a unit.
AMOUNTS = {
    **{prefix: factor for prefix, factor in _DECIMAL.items() if prefix},
    **{f"{prefix}B": factor for prefix, factor in (*_DECIMAL.items(), *_BINARY.items())},
    **{f"{prefix}{unit}": factor for prefix, factor in _DECIMAL.items() for unit in ("FLOP", "FLOPs")},
}
_NUMBER = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)\s*([A-Za-zµμ]*)")
_MAX_DIGITS = 40
# Ends of arguments' names that state their unit of time.
_TIME_ENDS = {
    "_ps": 1,
    "_ns": 10**3,
    "_us": 10**6,
    "_ms": 10**9,
    "_s": 10**12,
    "_sec": 10**12,
    "_seconds": 10**12,
}
_PLAIN_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class Quantity:
    """A number in the base unit of its kind: `time` in ps, `amount` in bytes or operations, or `plain`."""

    value: float | int
    kind: str


@dataclass(frozen=True)
class Bounds:
    """The numbers from `low` to `high`, both included unless they are `open`; None is no limit. `kind` is
    that of the numbers.
    """

    low: float | int | None
    high: float | int | None
    kind: str
    is_low_open: bool = False
    is_high_open: bool = False

    def contain(self, values: npt.NDArray[np.number], scale: float | int = 1) -> npt.NDArray[np.bool_]:
        """Whether each value times `scale` is within; NaN never is."""
        result = np.ones(len(values), np.bool_) if values.dtype.kind != "f" else ~np.isnan(values)
        if self.low is not None:
            low = self._limit(self.low, scale, values)
            result &= values > low if self.is_low_open else values >= low
        if self.high is not None:
            high = self._limit(self.high, scale, values)
            result &= values < high if self.is_high_open else values <= high
        return result

    @staticmethod
    def _limit(limit: float, scale: float | int, values: npt.NDArray[np.number]) -> float | int:
        """The limit for values that are not scaled yet; one beyond all integers of the column is a float."""
        bare = limit if scale == 1 else limit / scale
        if values.dtype.kind == "i" and isinstance(bare, int) and abs(bare) >= 2**63:
            return float(bare)
        return bare


def quantity(text: str) -> Quantity | None:
    """A number with or without a unit; None for any other text."""
    match = _NUMBER.fullmatch(text.strip())
    if not match or len(match[1]) > _MAX_DIGITS:
        return None
    number, unit = match[1], match[2]
    if unit not in TIMES and unit not in AMOUNTS and unit:
        return None
    factor = TIMES.get(unit) or AMOUNTS.get(unit, 1)
    exact = int(number) * factor if re.fullmatch(r"[+-]?\d+", number) else _whole(float(number) * factor)
    return Quantity(exact, "time" if unit in TIMES else "amount" if unit else "plain")


def _whole(value: float) -> float | int:
    """1.5 ms are exactly 1,500,000,000 ps, although 1.1e9 * 1000 may not be."""
    return int(value) if abs(value) < 2**53 and value == int(value) else value


def time_scale(name: str) -> int:
    """Picoseconds in a unit of an argument, by the end of its name (`stall_us`); 0 if it names none."""
    lower = name.lower()
    return next((scale for end, scale in _TIME_ENDS.items() if lower.endswith(end)), 0)


def number_in(text: str) -> float:
    """The number that a recorded text is; NaN if it is none."""
    stripped = text.strip()
    if len(stripped) > _MAX_DIGITS or not _PLAIN_NUMBER.fullmatch(stripped):
        return float("nan")
    return float(stripped)
