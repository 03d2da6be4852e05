"""What limits a set of requests: the part that takes most of the slowest ones, and what padding costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.inference.record import Batches, HostInference
from tb_tpuprof.analysis.inference.work import Part
from tb_tpuprof.trace.distinct_rows import distinct_rows

Int64s = npt.NDArray[np.int64]
FEWEST = 20  # requests: a tenth of fewer is no tail
_MOST = 0.4  # of the tail's latency: a part below that does not limit requests by itself
_MOST_SIZES = 4096  # distinct sizes of batches for which a further allowed size is looked for
Limit = Literal["queue", "host", "transfer", "device", "wait", "mixed", "unknown"]
# The parts as the page sums them up.
SIDES: dict[str, tuple[Part, ...]] = {
    "host": (Part.HOST_BEFORE, Part.HOST_RUNTIME, Part.HOST_AFTER),
    "queue": (Part.QUEUE,),
    "transfer": (Part.TO_DEVICE, Part.TO_HOST),
    "device": (Part.DEVICE,),
    "wait": (Part.WAIT,),
}


def sides(part_ps: npt.NDArray[np.int64]) -> dict[str, Int64s]:
    """Times by side (host, queue, transfer, device, wait) of rows of parts, in ps."""
    return {name: part_ps[:, list(parts)].sum(axis=1) for name, parts in SIDES.items()}


@dataclass(frozen=True)
class Limits:
    """`limit`: the side that takes at least 40% of the slowest tenth's latency; `mixed` if none does,
    `unknown` if there are fewer than 20 requests. `tail`: the slowest tenth, slowest first; `tail_ps`: mean
    latency of these, and `side_ps` its parts, longest first.
    """

    limit: Limit
    tail: npt.NDArray[np.intp]
    tail_ps: float
    side_ps: tuple[tuple[str, float], ...]


def limits(found: HostInference) -> Limits:
    """What limits these requests."""
    tail = found.slowest
    if not len(tail):
        return Limits("unknown", tail, 0.0, ())
    mean_ps = float(found.latency_ps[tail].mean())
    means = {name: float(time.mean()) for name, time in sides(found.part_ps[tail]).items()}
    ordered = tuple(sorted(means.items(), key=lambda item: -item[1]))
    top, top_ps = ordered[0]
    if len(found) < FEWEST:
        return Limits("unknown", tail, mean_ps, ordered)
    limit: Limit = top if top_ps >= _MOST * mean_ps else "mixed"  # type: ignore[assignment]
    return Limits(limit, tail, mean_ps, ordered)


@dataclass(frozen=True)
class Padding:
    """Slots of batches: examples that a batch has room for. `fraction`: padding among all slots.

    `worst_size`, `worst_padded`, `worst_share`: the size of batches with the most padding, what they are
    padded to, and their share of all padding. `better_size`: a further allowed size that would help most, -1
    if none would by a tenth; `better_fraction`: the padding with it.
    """

    n_slots: int
    n_padding: int
    worst_size: int = -1
    worst_padded: int = -1
    worst_share: float = 0.0
    better_size: int = -1
    better_fraction: float = 0.0

    @property
    def fraction(self) -> float:
        """Padding as a share of all slots."""
        return self.n_padding / self.n_slots if self.n_slots else 0.0


def padding_of(batches: Batches) -> Padding | None:
    """The padding of batches with known sizes; None if there are none."""
    known = (batches.size >= 0) & (batches.padded_size > 0) & (batches.size <= batches.padded_size)
    if not known.any():
        return None
    pairs, pair = distinct_rows(batches.size[known], batches.padded_size[known])
    count = np.bincount(pair)
    size, padded = pairs.T
    wasted = (padded - size) * count
    n_slots, n_padding = int((padded * count).sum()), int(wasted.sum())
    if not n_padding:
        return Padding(n_slots, 0)
    worst = int(wasted.argmax())
    better, left = _better_size(size, padded, count, n_padding)
    fraction = (n_padding - left) / (n_slots - left) if n_slots > left else 0.0
    is_worth_it = left >= n_padding / 10
    return Padding(
        n_slots,
        n_padding,
        int(size[worst]),
        int(padded[worst]),
        float(wasted[worst] / n_padding),
        better if is_worth_it else -1,
        fraction if is_worth_it else 0.0,
    )


def _better_size(size: Int64s, padded: Int64s, count: Int64s, n_padding: int) -> tuple[int, int]:
    """The further allowed size that saves the most padding, and how many slots it saves."""
    candidates = np.unique(size[size > 0])
    if not len(candidates) or len(size) > _MOST_SIZES:
        return -1, 0
    best, most = -1, 0
    for candidate in candidates.tolist():
        fits = (size <= candidate) & (padded > candidate)
        saved = int(((padded - candidate) * count)[fits].sum())
        if saved > most:
            best, most = candidate, min(saved, n_padding)
    return best, most
