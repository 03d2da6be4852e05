"""The one rule about rates above a peak: a device cannot exceed its peak, so such a rate was counted wrongly.

    counted rate ÷ peak   0 ────────────── 1 ── 1.05 ──────────▶
    shown                 share of the peak │ 100% │ unknown, in no sum

Counted FLOPs and bytes are those of the textbook: a Winograd convolution or an attention with a causal mask
computes fewer, and a cache serves bytes that memory then does not move. Up to `TOLERANCE` a rate is at the
peak: clocks run slightly above their rating.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
TOLERANCE = 1.05  # × the peak
# Why a number is unknown, as the end of a sentence.
MISCOUNTED = "more was counted than the peak allows in this time"


def share_of_peak(rate: Floats, peak: Floats | float) -> Floats:
    """Rates ÷ peak, at most 1; NaN where either is unknown (a peak of 0 is) or the rate exceeds the peak."""
    peaks = np.broadcast_to(np.asarray(peak, np.float64), np.shape(rate))
    share = np.divide(rate, peaks, out=np.full(np.shape(rate), np.nan), where=peaks > 0)
    return np.where(share > TOLERANCE, np.nan, np.minimum(share, 1.0))


def known_share(rate: float | None, peak: float) -> float | None:
    """`share_of_peak` of one rate, None where it is unknown."""
    if rate is None:
        return None
    share = float(share_of_peak(np.array([rate]), peak)[0])
    return None if np.isnan(share) else share


def is_above(rate: Floats, peak: Floats | float) -> npt.NDArray[np.bool_]:
    """Rates that exceed their peak. False where either is unknown."""
    peaks = np.broadcast_to(np.asarray(peak, np.float64), np.shape(rate))
    return (peaks > 0) & (np.nan_to_num(rate, posinf=np.inf) > TOLERANCE * peaks)


def excess_of(amount: Floats, seconds: Floats, peak: float) -> Floats:
    """Counted amounts ÷ the most that a peak allows in their time, where that is impossible; else 0. An
    amount in no time is not judged: it has no rate.
    """
    rate = np.divide(amount, seconds, out=np.zeros(np.shape(amount)), where=seconds > 0)
    return np.where(is_above(rate, peak), rate / (peak or 1.0), 0.0)
